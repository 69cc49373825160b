"""What a body does with the values that it carries."""

from __future__ import annotations

from tests.for_each import for_each
from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.frontends.onnx.convert.control_flow.loop_values import Growth, LoopBody


def body(nodes: str) -> LoopBody:
    """A body that carries `k` and gives `k1`, and collects `row`."""
    model = parsed(f"""
    g (int64 n, float[m] x) => (float[u] y) {{
        y, rows = Loop <body = b (int64 i, bool c, float[u] k)
            => (bool going, float[u] k1, float[m] row) {{
            going = Identity (c)
            {nodes}
        }}> (n, , x)
    }}""")
    return LoopBody(model.graph.node[0].attribute[0].g)


def test_copies_of_copies_are_invariant() -> None:
    found = body("row = Neg (k) a = Identity (k) k1 = Identity (a)")
    assert list(found.invariant()) == [0]
    assert not list(found.counters())
    assert not list(found.growing())


def test_what_is_added_to_may_be_a_counter() -> None:
    assert list(body("row = Neg (k) a = Add (x, k) k1 = Identity (a)").counters()) == [0]
    assert not list(body("row = Neg (k) k1 = Mul (x, k)").counters())


@for_each(
    ("nodes", "grows"),
    [
        ("row = Neg (x) k1 = Concat <axis = 0> (k, row)", True),
        ("row = Neg (x) a = Concat <axis = 0> (k, row) k1 = Identity (a)", True),
        ("row = Neg (k) k1 = Concat <axis = 0> (k, row)", False),  # read in the step
        ("k1 = Concat <axis = 0> (k, x) row = Neg (k1)", False),
        ("a = Concat <axis = 0> (k, x) k1 = Identity (a) row = Neg (k1)", False),
        ("row = Neg (x) k1 = Concat <axis = 0> (row, k)", False),  # at its front
    ],
)
def test_growth(nodes: str, grows: bool) -> None:
    piece = "row" if "row)" in nodes else "x"
    assert list(body(nodes).growing()) == ([(0, Growth(piece, 0))] if grows else [])
