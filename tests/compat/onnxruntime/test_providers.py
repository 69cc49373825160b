from __future__ import annotations

import onnxruntime as theirs
import pytest

from tests.for_each import for_each
from tilewright.compat.onnxruntime import providers


def test_names() -> None:
    assert providers.get_available_providers() == ["CPUExecutionProvider"]
    assert providers.get_all_providers() == theirs.get_all_providers()
    assert set(providers.get_available_providers()) <= set(theirs.get_available_providers())


@for_each(
    ("given", "options", "what"),
    [
        (5, None, "'providers' should be a sequence"),
        ([5], None, "strings or"),
        ([providers.CPU], 5, "'provider_options' should be a sequence"),
        ([providers.CPU], [], "same length"),
        ([(providers.CPU, {})], [{}], "Only string values"),
        ([providers.CPU], [5], "must be dicts"),
    ],
)
def test_what_is_wrong(given: object, options: object, what: str) -> None:
    with pytest.raises(ValueError, match=what):
        providers.chosen_providers(given, options)  # type: ignore[arg-type]


def test_what_is_right() -> None:
    both = providers.chosen_providers([providers.CPU], [{"a": 1}])
    assert both == providers.chosen_providers(None, None) == {providers.CPU: {}}
