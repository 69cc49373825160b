from __future__ import annotations

from dataclasses import replace

import pytest

from tests.for_each import for_each
from tilewright.core.errors import ParseError
from tilewright.ir.loop.text import parse_func
from tilewright.tune.workload import (
    distance,
    parse_workload,
    structure,
    workload_hash,
    workload_text,
)

SCALE = """
func @scale{name}(x0: f32[{n}, 16], x1: f32[16], out y: f32[{n}, 16]) {{
  for y.i0 in serial({n}) {{
    for y.i1 in serial(16) {{
      block "y" [i0: S({n}) = y.i0, i1: S(16) = y.i1] reads x0[i0, i1], x1[i1] writes y[i0, i1]
        {{ y[i0, i1] = x0[i0, i1] * x1[i1] + 2.5 }}
    }}
  }}
}}
"""
X1 = frozenset({"x1"})


def _text(n: int | str, name: str = "", constants: frozenset[str] = X1) -> str:
    return workload_text(parse_func(SCALE.format(n=n, name=name)), constants)


def test_names_of_functions_do_not_matter_but_all_else_does() -> None:
    assert _text(8) == _text(8, "_2")
    texts = [_text(8), _text(9), _text("N"), _text(8, "", frozenset())]
    assert len({workload_hash(text) for text in texts}) == 4
    assert all(len(workload_hash(text)) == 32 for text in texts)


@for_each("constants", [frozenset(), X1, frozenset({"x0", "x1"})])
def test_the_text_gives_the_function_back(constants: frozenset[str]) -> None:
    func, known = parse_workload(_text(8, "", constants))
    assert known == constants
    assert workload_text(replace(func, name="other"), known) == _text(8, "", constants)


def test_other_texts_are_refused() -> None:
    with pytest.raises(ParseError):
        parse_workload(SCALE.format(n=8, name=""))


def test_structure_is_all_but_whole_numbers() -> None:
    assert structure(_text(8)) == structure(_text(12)) != structure(_text("N"))
    assert "x1" in structure(_text(8))
    assert "2.5" in structure(_text(8))
    changed = _text(8).replace("2.5", "3.5")
    assert structure(changed) != structure(_text(8))


def test_distance_counts_factors() -> None:
    assert distance(_text(8), _text(8)) == 0
    assert distance(_text(8), _text(16)) == distance(_text(16), _text(8))
    assert distance(_text(64), _text(8)) > distance(_text(64), _text(32)) > 0
