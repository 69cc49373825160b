from __future__ import annotations

import pytest

from tests.for_each import for_each
from tests.tune.spaces import smooth
from tilewright.core.errors import ConfigError
from tilewright.tune.method import SearchMethod, methods


def test_models_only_where_they_are_used() -> None:
    found = methods(["random", "evolutionary", "random"], ["ridge", "random"])
    assert list(map(str, found)) == ["random", "evolutionary+ridge", "evolutionary+random"]


def test_unknown_names() -> None:
    for names in ((["evolution"], ["ridge"]), (["random"], ["rigde"])):
        with pytest.raises(ConfigError) as caught:
            methods(*names)
        assert caught.value.code == "registry.unknown"


@for_each("names", [([], ["ridge"]), (["evolutionary"], [])])
def test_nothing_to_compare(names: tuple[list[str], list[str]]) -> None:
    with pytest.raises(ConfigError) as caught:
        methods(*names)
    assert caught.value.code == "lab.nothing"


def test_methods_draw_differently_with_the_same_seed() -> None:
    first = SearchMethod("random").start(smooth(), 0).propose(8)
    assert SearchMethod("random").start(smooth(), 0).propose(8) == first
    assert SearchMethod("random").start(smooth(), 1).propose(8) != first
    assert SearchMethod("genetic").start(smooth(), 0).propose(8) != first
