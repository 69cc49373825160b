from __future__ import annotations

from inspect import signature

import pytest

from tilewright.frontends.torch.named_arguments import with_arguments


def test_a_function_says_which_arguments_it_has() -> None:
    found = with_arguments(lambda **given: given, ["x", "y"])
    assert list(signature(found).parameters) == ["x", "y"]
    assert found(1, y=2) == found(1, 2) == {"x": 1, "y": 2}
    for args in ((1,), (1, 2, 3)):
        with pytest.raises(TypeError):
            found(*args)
