from __future__ import annotations

from tests.for_each import for_each
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import blocks
from tilewright.schedule.intrin.match import match_intrinsic


def _tile(body: str):
    func = parse_func(
        f"""
        func @f(x: f32[8, 8], w: f32[8, 8], p: i8[8, 8], q: i8[2, 2, 4, 4], out y: f32[8, 8],
                out z: i32[8, 8]) {{
          block "tile" [] reads x[0 : 8, 0 : 8], w[0 : 8, 0 : 8] writes y[0 : 8, 0 : 8],
            z[0 : 8, 0 : 8] {{ {body} }}
        }}
        """
    )
    return next(blocks(func.body))


def test_loops_in_any_order_and_operands_exchanged() -> None:
    block = _tile("for k, i, j in serial(2, 3, 4) { y[i, j] = w[k, j] * x[i, k] + y[i, j] }")
    found = match_intrinsic("fma_tile", block)
    assert found is not None
    assert dict(found.operands) == {"c": "y", "a": "x", "b": "w"}
    assert dict(found.sizes) == {"M": 3, "N": 4, "K": 2}


def test_places_that_do_not_move_are_ignored() -> None:
    block = _tile("for j, k in serial(4, 4) { z[3, j + 4] += i32(p[3, k]) * i32(q[1, 0, j, k]) }")
    assert match_intrinsic("sdot", block) is not None


@for_each(
    "body",
    [
        "for i, j, k in serial(3, 4, 2) { y[i, j] += x[i, k] * w[j, k] }",
        "for i, j, k in serial(3, 4, 2) { y[i, j] += x[i, k] + w[k, j] }",
        "for i, j, k in serial(3, 4, 2) { y[i, j] += x[i, k] * x[k, j] }",
        "for i, j, k in serial(3, 4, 2) { y[i, j] += x[i, k * 2] * w[k, j] }",
        "for i, j, k in serial(3, 4, 2) { y[i, j] += x[i, k ? k < 1] * w[k, j] }",
        "for i, j, k in serial(3, 4, 2) { y[i, j] = x[i, k] * w[k, j] }",
        "for i, j in serial(3, 4) { y[i, j] += x[i, 0] * w[0, j] }",
        "y[0, 0] = 1.0",
    ],
)
def test_other_code_does_not_match(body: str) -> None:
    assert match_intrinsic("fma_tile", _tile(body)) is None


def test_other_extents_do_not_match() -> None:
    block = _tile("for j, k in serial(2, 4) { z[3, j] += i32(p[3, k]) * i32(q[1, 0, j, k]) }")
    assert match_intrinsic("sdot", block) is None
