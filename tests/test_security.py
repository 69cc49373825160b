"""What SECURITY.md says: limits by their figures, and data that tries to be code."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.for_each import for_each
from tilewright.arith.evaluate import compile_index
from tilewright.arith.expr import Expr, Load, Var, const
from tilewright.arith.text import parse_expr
from tilewright.core.dtypes import F32
from tilewright.core.errors import Error, ParseError
from tilewright.frontends.onnx.model.sparse import MAX_ELEMENTS
from tilewright.frontends.onnx.model.validate import MAX_NODES
from tilewright.ir.graph.parse import parse_graph
from tilewright.ir.loop.interp.run import run_func
from tilewright.ir.loop.nodes import Buffer, For, Func, Store
from tilewright.ir.loop.parse import parse_func
from tilewright.ir.types import MAX_BYTES, MAX_RANK
from tilewright.ops.attrs import make_attrs

ROOT = Path(__file__).parents[1]
MARK = "tilewright_was_here"
# Names that would run code if they stood in generated Python as they are.
HOSTILE = (
    f"x']; __import__('os').environ.update({MARK}='1'); ['",
    f"x\n    __import__('os').environ['{MARK}'] = '1'\n    y",
    f"__import__('os').environ.__setitem__('{MARK}', '1')",
    f'x"]; open("{MARK}", "w"); ["',
    "\N{FULLWIDTH LATIN SMALL LETTER X}\N{FULLWIDTH LEFT PARENTHESIS}",
)


def test_limits_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| ([^|]+) \| (2\^\d+|\d+) \| `([\w.-]+)` \|", _text(), re.M)
    found = {what: eval(limit.replace("^", "**"), {}) for what, limit, _ in rows}
    assert found == {
        "Bytes of a tensor": MAX_BYTES,
        "Axes of a tensor": MAX_RANK,
        "Elements of a sparse tensor": MAX_ELEMENTS,
        "Nodes of a model, its functions written out": MAX_NODES,
    }


def test_errors_are_those_of_the_code() -> None:
    codes = set(re.findall(r"\| `([a-z]+\.[a-z-]+)` \|$", _text(), re.M))
    assert len(codes) >= 6
    listed = (ROOT / "docs" / "reference" / "errors.md").read_text()
    assert not [code for code in codes if f"`{code}`" not in listed]


@pytest.mark.parametrize("name", HOSTILE)
def test_names_are_no_python(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Whatever made the names, and not only what a parser admits."""
    monkeypatch.chdir(tmp_path)
    x, y = Buffer(name, F32, (Var(f"n{name}"),)), Buffer(f"{name}y", F32, (Var(f"n{name}"),))
    loop = Var(f"i{name}")
    body = For(
        loop.name, Var(f"n{name}"), "serial", Store(y.name, (loop,), Load(name, (loop,), F32))
    )
    arrays = {x.name: np.ones(3, np.float32), y.name: np.zeros(3, np.float32)}
    run_func(Func(f"f{name}", (x, y), (y.name,), body), arrays)
    assert arrays[y.name].tolist() == [1, 1, 1]
    size: Expr = Var(name) * 2 + const(1)
    assert compile_index(size, (name,))(4) == 9
    assert MARK not in os.environ
    assert not list(tmp_path.iterdir())


@for_each("name", HOSTILE)
def test_parsers_admit_no_such_names(name: str) -> None:
    for parse, text in (
        (parse_func, f"func @f({name}: f32[1], out y: f32[1]) {{ y[0] = {name}[0] }}"),
        (parse_expr, f"{name} + 1"),
        (lambda text: parse_graph(text, make_attrs), f"graph @g({name}: f32[1]) -> ({name})"),
    ):
        with pytest.raises(Error):
            parse(text)


def test_deep_text_is_an_error() -> None:
    depth = 1_500
    for parse, text in (
        (parse_expr, "(" * depth + "x" + ")" * depth),
        (parse_expr, "!" * depth + "x"),
        (parse_expr, "x" + " + (x" * depth + ")" * depth),
        (parse_func, "func @f(out y: f32[1]) {" + "for i in serial(1) {" * depth + "}" * depth),
    ):
        with pytest.raises(ParseError, match="nested too deeply"):
            parse(text)


def _text() -> str:
    return (ROOT / "SECURITY.md").read_text()
