"""Scan: axes and directions, states, batches of version 8."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.for_each import for_each
from tests.frontends.onnx.convert.control_flow.test_loop import check
from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.core.errors import ExecutionError, FrontendError
from tilewright.driver.compile import compile
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.runtime.cpu.executable import Executable

RNG = np.random.default_rng(3)

BODY = """
    b (float[m] h, float[m] a, float[m] d) => (float[m] next, float[m] row, float[m] other) {
        p = Mul (a, w)
        q = Add (p, d)
        next = Add (h, q)
        row = Neg (next)
        other = Add (a, d)
    }
"""


def model(attributes: str = "") -> onnx.ModelProto:
    return parsed(
        f"""
    g (float[m] h, float[t, m] x, float[m, t] z, float[m] w)
        => (float[m] y, float[p, q] rows, float[r, s] others) {{
        y, rows, others = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1] {attributes},
            body = {BODY}> (h, x, z, w)
    }}""".replace("(h, x, z, w)", "(h, x, z)")
    )


def inputs(t: int, m: int) -> dict[str, np.ndarray]:
    shapes = {"h": (m,), "x": (t, m), "z": (m, t), "w": (m,)}
    return {name: RNG.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


@pytest.mark.parametrize(
    "attributes",
    [
        "",
        ", scan_input_directions = [1, 0]",
        ", scan_output_directions = [0, 1]",
        ", scan_output_axes = [1, -1], scan_input_directions = [1, 1]",
        ", scan_output_axes = [-2, 1], scan_output_directions = [1, 1]",
    ],
)
def test_axes_and_directions(attributes: str) -> None:
    given = [inputs(t, m) for t, m in ((4, 5), (1, 3), (9, 17))]
    made = model(attributes)
    with compile(made, cache=False) as compiled:
        assert isinstance(compiled, Executable)
        for values in given:
            found = compiled.run(values)
            arrays = expected(attributes, values)
            for name, array in zip(("y", "rows", "others"), arrays, strict=True):
                np.testing.assert_allclose(found[name], array, rtol=1e-4, atol=1e-5)


def expected(attributes: str, v: dict[str, np.ndarray]) -> list[np.ndarray]:
    """What the node means, as NumPy says it."""
    reads = [1, 1] if "input_directions = [1, 1]" in attributes else [0, 0]
    reads = [1, 0] if "input_directions = [1, 0]" in attributes else reads
    xs, zs = v["x"], v["z"].T
    xs, zs = (a[::-1] if turn else a for a, turn in zip((xs, zs), reads, strict=True))
    h, rows, others = v["h"], [], []
    for a, d in zip(xs, zs, strict=True):
        h = h + (a * v["w"] + d)
        rows.append(-h)
        others.append(a + d)
    if "output_directions = [1, 1]" in attributes:
        rows.reverse()
    if "output_directions" in attributes:
        others.reverse()
    stacks = [np.stack(rows), np.stack(others)]
    if "output_axes = [1, -1]" in attributes:
        stacks = [s.T for s in stacks]
    if "output_axes = [-2, 1]" in attributes:
        stacks[1] = stacks[1].T
    return [h, *stacks]


def test_no_slices() -> None:
    with compile(model(), cache=False) as compiled:
        given = inputs(0, 4)
        found = compiled.run(given)
        np.testing.assert_array_equal(found["y"], given["h"])
        assert found["rows"].shape == (0, 4)


def test_sizes_that_differ() -> None:
    made = model()
    made.graph.input[2].type.tensor_type.shape.dim[1].dim_param = "u"
    with compile(made, cache=False) as compiled, pytest.raises(ExecutionError, match="size"):
        compiled.run({**inputs(4, 5), "z": np.zeros((5, 3), np.float32)})
    made.graph.input[1].type.tensor_type.shape.dim[0].dim_value = 3
    made.graph.input[2].type.tensor_type.shape.dim[1].dim_value = 4
    with pytest.raises(FrontendError, match="3 and 4 slices"):
        import_onnx(made)


BATCHED = """
<ir_version: 4, opset_import: ["" : 8]>
g (LENGTHS float[b, m] h, float[b, t, m] x) => (float[b, m] y, float[b, t, m] rows) {
    y, rows = Scan <num_scan_inputs = 1, directions = [TURN],
        body = s (float[m] s, float[m] a) => (float[m] next, float[m] row) {
            next = Add (s, a)
            row = Neg (next)
        }> (GIVEN, h, x)
}
"""


@pytest.mark.parametrize("turn", [0, 1])
@pytest.mark.parametrize("lengths", [None, [3, 0, 2]])
def test_batches(turn: int, lengths: list[int] | None) -> None:
    declared, given_name = ("int64[b] lengths,", "lengths") if lengths else ("", "")
    words = {"LENGTHS": declared, "GIVEN": given_name}
    text = BATCHED.replace("TURN", str(turn))
    for word, meaning in words.items():
        text = text.replace(word, meaning)
    h = RNG.normal(size=(3, 4)).astype(np.float32)
    x = RNG.normal(size=(3, 3, 4)).astype(np.float32)
    given = {"h": h, "x": x} | ({"lengths": np.array(lengths)} if lengths else {})
    with compile(onnx.parser.parse_model(text), cache=False) as compiled:
        assert isinstance(compiled, Executable)
        found = compiled.run(given)
    for b, length in enumerate(lengths or [3, 3, 3]):
        rows = x[b, :length][::-1] if turn else x[b, :length]
        sums = h[b] + np.cumsum(rows, 0)
        last = sums[-1] if length else h[b]
        np.testing.assert_allclose(found["y"][b], last, rtol=1e-5)
        np.testing.assert_allclose(found["rows"][b, :length], -sums, rtol=1e-5)
        assert not found["rows"][b, length:].any()


def test_what_waits_inside_runs_on_the_host() -> None:
    made = parsed("""
    g (float h, float[t, m] x) => (float y, float[t] rows) {
        y, rows = Scan <num_scan_inputs = 1, body = b (float s, float[m] a) => (float n, float r) {
            k = NonZero (a)
            shape = ReduceSum <keepdims = 0> (k)
            one = Constant <value = int64[1] {1}> ()
            wide = Reshape (shape, one)
            big = Expand (s, wide)
            sum = ReduceSum <keepdims = 0> (big)
            n = Add (s, sum)
            r = Neg (n)
        }> (h, x)
    }""")

    def meaning(h: Any, x: Any) -> tuple[Any, ...]:
        rows = []
        for a in x:
            h = h + h * np.flatnonzero(a).sum()
            rows.append(-h)
        return h, rows

    check(made, meaning, {"h": np.float32(1), "x": inputs(3, 4)["x"]}, native=False)


@for_each(
    ("attributes", "message"),
    [
        (", scan_output_axes = [0]", "scan_output_axes has 1 numbers for 2"),
        (", scan_input_directions = [0, 2]", "use 0 for forward"),
    ],
)
def test_malformed(attributes: str, message: str) -> None:
    with pytest.raises(FrontendError) as caught:
        import_onnx(model(attributes))
    assert message in str(caught.value)
