from __future__ import annotations

import sys

import pytest

from tests.for_each import for_each
from tilewright.core.errors import ConfigError
from tilewright.core.registry import Registry

SHAPES: Registry[type] = Registry(
    "shape",
    {
        "fraction": "fractions:Fraction",
        "decimal": "decimal:Decimal",
        "counter": "collections:Counter",
    },
)
LACKING: Registry[type] = Registry("model", {"boosted": "tw_fake.boosted:Model"})


def test_get_imports_by_string() -> None:
    from fractions import Fraction

    assert SHAPES.get("fraction") is Fraction


def test_nothing_is_imported_before_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "this", raising=False)
    registry: Registry[object] = Registry("poem", {"zen": "this:s", "other": "decimal:Decimal"})
    registry.names()
    registry.get("other")
    assert "this" not in sys.modules


def test_names_keep_the_order_of_the_table() -> None:
    assert SHAPES.names() == ("fraction", "decimal", "counter")


def test_unknown_name_lists_near_ones() -> None:
    with pytest.raises(ConfigError) as caught:
        SHAPES.get("fractoin")
    assert caught.value.code == "registry.unknown"
    assert caught.value.message == "no shape named 'fractoin'"
    assert caught.value.help == "did you mean 'fraction'?"


@for_each("name", ["", "zzz"])
def test_unknown_name_with_nothing_near_lists_all(name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SHAPES.get(name)
    assert caught.value.help == "known: fraction, decimal, counter"


def test_empty_table() -> None:
    empty: Registry[object] = Registry("thing", {})
    assert empty.names() == ()
    assert empty.describe() == []
    with pytest.raises(ConfigError, match="known: none"):
        empty.get("x")


def test_describe_gives_first_docstring_lines() -> None:
    assert [name for name, _ in SHAPES.describe()] == ["fraction", "decimal", "counter"]
    assert dict(SHAPES.describe())["fraction"] == "This class implements rational numbers."


@pytest.fixture
def _boosted_needs_a_package(tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "tw_fake"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "boosted.py").write_text("import tw_no_such_package.part\n")
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("_boosted_needs_a_package")
def test_missing_optional_package_says_what_to_install() -> None:
    with pytest.raises(ConfigError) as caught:
        LACKING.get("boosted")
    assert caught.value.code == "registry.missing-package"
    assert caught.value.help == "pip install tw_no_such_package"
    assert "tw_no_such_package" in dict(LACKING.describe())["boosted"]


def test_wrong_table_is_our_own_bug() -> None:
    wrong: Registry[object] = Registry("thing", {"x": "tw_nowhere.module:X"})
    with pytest.raises(ModuleNotFoundError):
        wrong.get("x")
