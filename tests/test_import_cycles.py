"""No file imports itself in a circle, not even for annotations alone; see `structure.py`."""

from __future__ import annotations

import pytest

from tests.structure import ROOT, cycles, figures, import_graph


def test_components() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert cycles(graph) == [frozenset("bc")]


def test_no_import_cycles() -> None:
    found = [sorted(c) for c in cycles(import_graph(ROOT))]
    assert not found, "import what both need from a third file, or name a protocol"


@pytest.mark.slow
def test_figures_of_this_checkout() -> None:
    found = figures(ROOT)
    assert int(found["files"]) > 800
    assert found["import cycles"] == str(len(cycles(import_graph(ROOT))))
