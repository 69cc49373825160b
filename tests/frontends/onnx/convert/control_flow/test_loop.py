"""Loop: trip counts and conditions, rows, captured values, and what must run on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from tests.frontends.onnx.segments.segmented_models import parsed
from tilewright.core.errors import Error, FrontendError
from tilewright.driver.compile import compile
from tilewright.driver.segmented.model import SegmentedModel
from tilewright.frontends.onnx.importer import import_onnx
from tilewright.ops.control.loop import LoopAttrs
from tilewright.runtime.cpu.executable import Executable

BODY = """
    b (int64 i, bool c, float[m] h) => (bool going, float[m] next, float[m] row) {
        going = Identity (c)
        f = CastLike (i, x)
        scaled = Mul (x, f)
        next = Add (h, scaled)
        row = Neg (next)
    }
"""


Meaning = Callable[..., tuple[Any, ...]]


def check(
    model: onnx.ModelProto, meaning: Meaning, *runs: dict[str, np.ndarray], native: bool = True
) -> None:
    """Compare with a function of the inputs that gives the outputs."""
    with compile(model, cache=False) as compiled:
        assert isinstance(compiled, Executable if native else SegmentedModel)
        for given in runs:
            found = compiled.run(given)
            names = [v.name for v in model.graph.output]
            for name, array in zip(names, meaning(**given), strict=True):
                assert found[name].shape == np.shape(array), name
                np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-5)


def sums(count: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What BODY gives after so many steps."""
    rows = [x + x * (i * (i + 1) // 2) for i in range(count)]
    return (rows[-1] if rows else x), -np.reshape(rows, (count, *x.shape))


def doubled(most: float, h: float, below: float) -> tuple[float, list[float]]:
    """What WHILE gives if it begins."""
    rows: list[float] = []
    while len(rows) < most:
        rows.append(float(h))
        h = h + h
        if not h < below:
            break
    return h, rows


def x(size: int = 5) -> np.ndarray:
    return np.random.default_rng(size).normal(size=size).astype(np.float32)


def test_a_constant_count() -> None:
    model = parsed(f"""
    g (float[m] x) => (float[m] y, float[n, m] rows) {{
        n = Constant <value = int64 {{7}}> ()
        y, rows = Loop <body = {BODY}> (n, , x)
    }}""")
    check(model, lambda x: sums(7, x), {"x": x()}, {"x": x(33)})


def test_a_count_that_is_a_size() -> None:
    model = parsed(f"""
    g (float[m] x) => (float[m] y, float[n, m] rows) {{
        shape = Shape (x)
        n = Squeeze (shape)
        y, rows = Loop <body = {BODY}> (n, , x)
    }}""")
    check(model, lambda x: sums(len(x), x), {"x": x()}, {"x": x(1)})


def test_a_count_that_is_data() -> None:
    model = parsed(f"""
    g (int64 n, float[m] x) => (float[m] y) {{
        y, unused = Loop <body = {BODY}> (n, , x)
    }}""")
    model.graph.node[0].output[1] = ""
    runs = ({"n": np.array(n), "x": x()} for n in (3, 0, 100, -2))
    check(model, lambda n, x: sums(max(n, 0), x)[:1], *runs)


def test_rows_of_a_count_that_is_data_wait_for_it() -> None:
    model = parsed(f"""
    g (int64 n, float[m] x) => (float[m] y, float[k, m] rows) {{
        y, rows = Loop <body = {BODY}> (n, , x)
    }}""")
    runs = ({"n": np.array(n), "x": x()} for n in (3, 0, 17, 1, 4))
    check(model, lambda n, x: sums(n, x), *runs, native=False)


def test_one_plan_serves_all_counts() -> None:
    model = parsed(f"""
    g (int64 n, float[m] x) => (float[m] y, float[k, m] rows) {{
        two = Constant <value = int64 {{2}}> ()
        twice = Mul (n, two)
        y, rows = Loop <body = {BODY}> (twice, , x)
    }}""")
    with compile(model, cache=False) as compiled:
        assert isinstance(compiled, SegmentedModel)
        for n in (2, 3, 50):
            found = compiled.run({"n": np.array(n), "x": x()})
            np.testing.assert_allclose(found["rows"], sums(2 * n, x())[1], rtol=1e-5)
        assert compiled.explain().count("kernel calls") == 2


WHILE = """
    b (int64 i, bool c, float h, float[m] z) => (bool going, float next, float[m] z, float row) {
        next = Add (h, h)
        going = Less (next, below)
        row = Identity (h)
    }
"""


def test_a_condition() -> None:
    model = parsed(f"""
    g (float h, float below, bool start, float[m] x) => (float y, float[m] z) {{
        y, z, unused = Loop <body = {WHILE}> (, start, h, x)
    }}""")
    model.graph.node[0].output[2] = ""
    values = {"below": np.float32(50), "h": np.float32(1), "x": x()}
    runs = ({**values, "start": np.array(start)} for start in (True, False))

    def meaning(h: Any, below: Any, start: Any, x: Any) -> tuple[Any, ...]:
        return (doubled(99, h, below)[0] if start else h), x

    check(model, meaning, *runs)


@pytest.mark.parametrize(("most", "native"), [(9, True), (10**12, False)])
def test_rows_of_a_loop_that_may_end_early(most: int, native: bool) -> None:
    model = parsed(f"""
    g (float h, float below, float[m] x) => (float y, float[k] rows) {{
        n = Constant <value = int64 {{{most}}}> ()
        start = Constant <value = bool {{1}}> ()
        y, z, r = Loop <body = {WHILE}> (n, start, h, x)
        rows = Identity (r)
    }}""")
    runs = ({"below": np.float32(b), "h": np.float32(1), "x": x()} for b in (50, 0, 1e3))
    check(model, lambda h, below, x: doubled(most, h, below), *runs, native=native)


def test_what_it_carries_grows() -> None:
    model = parsed("""
    g (float[m] x) => (float[k] y) {
        n = Constant <value = int64 {3}> ()
        y = Loop <body = b (int64 i, bool c, float[k] h) => (bool going, float[k] next) {
            going = Identity (c)
            next = Concat <axis = 0> (h, x)
        }> (n, , x)
    }""")
    check(model, lambda x: (np.tile(x, 4),), {"x": x()})


def test_what_grows_and_is_read_runs_on_the_host() -> None:
    model = parsed("""
    g (float[m] x) => (float[k] y) {
        n = Constant <value = int64 {3}> ()
        y = Loop <body = b (int64 i, bool c, float[k] h) => (bool going, float[k] next) {
            going = Identity (c)
            joined = Concat <axis = 0> (h, x)
            next = Neg (joined)
        }> (n, , x)
    }""")
    check(model, lambda x: (np.concatenate([-x, -x, x, -x]),), {"x": x()}, native=False)


# As tf2onnx writes a loop of TensorFlow without a number of steps: the counter, its limit and the
# weights are carried, and the counter is compared as a float.
RECURRENCE = """
    b (int64 i, bool c, int32 t, float[n, h] s, int32 limit, float[d, h] k)
        => (bool going, int32 t1, float[n, h] s1, int32 limit1, float[d, h] k1, float[n, h] row) {
        one = Constant <value = int32 {1}> ()
        t1 = Add (t, one)
        k1 = Identity (k)
        limit1 = Identity (limit)
        now = Gather <axis = 0> (x, t)
        in = MatMul (now, k)
        sum = Add (in, s)
        row = Tanh (sum)
        s1 = Identity (row)
        a = Cast <to = 1> (t1)
        b = Cast <to = 1> (limit1)
        going = Less (a, b)
    }
"""
KERNEL = np.random.default_rng(1).normal(size=(3, 4)).astype(np.float32)


def recurrence(x: np.ndarray, s: np.ndarray, steps: int, k: np.ndarray) -> list[np.ndarray]:
    rows = []
    for t in range(steps):
        s = np.tanh(x[t] @ k + s)
        rows.append(s)
    return rows


def steps_of(size: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(size)
    return {
        "x": rng.normal(size=(size, 2, 3)).astype(np.float32),
        "s": rng.normal(size=(2, 4)).astype(np.float32),
        "k": KERNEL,
    }


def test_a_counter_that_is_carried_decides_how_many_steps_there_are() -> None:
    model = parsed(f"""
    g (float[t, n, d] x, float[n, h] s, float[d, h] k) => (int32 last, float[u, n, h] rows) {{
        shape = Shape <start = 0, end = 1> (x)
        size = Squeeze (shape)
        limit = Cast <to = 6> (size)
        zero = Constant <value = int32 {{0}}> ()
        a = Cast <to = 1> (zero)
        b = Cast <to = 1> (limit)
        begin = Less (a, b)
        last, s1, l1, k1, rows = Loop <body = {RECURRENCE}> (, begin, zero, s, limit, k)
    }}""")
    for name in ("s1", "l1", "k1"):
        model.graph.node[-1].output[list(model.graph.node[-1].output).index(name)] = ""
    graph = import_onnx(model)
    (loop,) = [n for n in graph.nodes if n.op == "loop"]
    assert isinstance(loop.attrs, LoopAttrs)
    assert (loop.attrs.carried, loop.attrs.conditional, str(loop.attrs.trip_count)) == (
        *(1, False, "t"),
    )

    def meaning(x: Any, s: Any, k: Any) -> tuple[Any, ...]:
        return np.int32(len(x)), np.reshape(recurrence(x, s, len(x), k), (len(x), *s.shape))

    check(model, meaning, steps_of(5), steps_of(1), steps_of(0))


RAGGED = f"""
    g (float[t, n, d] x, float[n, h] s, float[d, h] k, int32 limit) => (float[u, n, h] rows) {{
        zero = Constant <value = int32 {{0}}> ()
        begin = Less (zero, limit)
        c1, s1, l1, k1, rows = Loop <body = {RECURRENCE}> (, begin, zero, s, limit, k)
    }}"""


def test_rows_of_a_limit_that_is_data_have_the_bound_that_the_sequence_gives() -> None:
    model = parsed(RAGGED)
    for k in range(4):
        model.graph.node[-1].output[k] = ""
    runs = ({**steps_of(6), "limit": np.array(n, np.int32)} for n in (4, 6, 1, 0, -3))

    def meaning(x: Any, s: Any, k: Any, limit: Any) -> tuple[Any, ...]:
        rows = recurrence(x, s, max(limit, 0), k)
        return (np.reshape(rows, (len(rows), *s.shape)),)

    check(model, meaning, *runs)
    with compile(model) as compiled, pytest.raises(Error, match="not within t elements"):
        compiled.run({**steps_of(6), "limit": np.array(8, np.int32)})


@pytest.mark.parametrize(("first", "by", "limit"), [(0, 2, 7), (9, -3, -4), (1, 1, 0), (3, 4, 100)])
def test_counters(first: int, by: int, limit: int) -> None:
    """Any step, up or down; the condition is tested after each step, and one is always taken."""
    order = "Less" if by > 0 else "Greater"
    model = parsed(f"""
    g (float[m] x) => (int64 last, float[m] y) {{
        first = Constant <value = int64 {{{first}}}> ()
        last, y = Loop <body = b (int64 i, bool c, int64 t, float[m] h)
            => (bool going, int64 t1, float[m] next) {{
            by = Constant <value = int64 {{{by}}}> ()
            limit = Constant <value = int64 {{{limit}}}> ()
            t1 = Add (t, by)
            f = CastLike (t, h)
            next = Add (h, f)
            going = {order} (t1, limit)
        }}> (, , first, x)
    }}""")
    values = [first]
    while values[-1] < limit if by > 0 else values[-1] > limit:
        values.append(values[-1] + by)
    values = values[:-1] or [first]
    check(model, lambda x: (values[-1] + by, x + sum(values)), {"x": x()})


def test_a_loop_that_only_counts_is_a_number() -> None:
    model = parsed("""
    g (float[m] x) => (int64 last) {
        first = Constant <value = int64 {2}> ()
        n = Size (x)
        last = Loop <body = b (int64 i, bool c, int64 t) => (bool going, int64 t1) {
            going = Identity (c)
            t1 = Add (t, first)
        }> (n, , first)
    }""")
    assert not [n for n in import_onnx(model).nodes if n.op == "loop"]
    check(model, lambda x: (2 + 2 * x.size,), {"x": x()})


# Nothing is carried but a counter, and data say when to stop.
COUNTED = """
g (float limit, float x) => ({results}) {{
    true = Constant <value = bool {{1}}> ()
    zero = Constant <value = int64 {{0}}> ()
    n, kept = Loop <body = b (int64 i, bool c, int64 k, float v) => (bool d, int64 m, float w) {{
        one = Constant <value = int64 {{1}}> ()
        m = Add (k, one)
        w = Identity (v)
        f = Cast <to = 1> (m)
        d = Less (f, limit)
    }}> (, true, zero, x)
    y = Neg (kept)
}}
"""


@pytest.mark.parametrize(
    ("results", "native"), [("float y", True), ("int64 n", False)], ids=["unused", "wanted"]
)
def test_a_loop_without_results_of_its_own(results: str, native: bool) -> None:
    def meaning(limit: np.ndarray, x: np.ndarray) -> tuple[Any, ...]:
        return (-x,) if native else (max(1, int(np.ceil(limit))),)

    runs = [
        {"limit": np.array(n, np.float32), "x": np.array(3, np.float32)} for n in (-1.0, 0.0, 4.5)
    ]
    model = parsed(COUNTED.format(results=results))
    if native:
        next(n for n in model.graph.node if n.op_type == "Loop").output[0] = ""
    check(model, meaning, *runs, native=native)


def test_what_waits_inside_runs_on_the_host() -> None:
    model = parsed("""
    g (float[m] x, int64[k] shape) => (float y) {
        n = Constant <value = int64 {3}> ()
        zero = Constant <value = float {0}> ()
        y = Loop <body = b (int64 i, bool c, float h) => (bool going, float next) {
            going = Identity (c)
            one = Constant <value = int64[1] {1}> ()
            wide = Concat <axis = 0> (one, shape)
            big = Expand (x, wide)
            sum = ReduceSum <keepdims = 0> (big)
            next = Add (h, sum)
        }> (n, , zero)
    }""")
    given = {"x": x(), "shape": np.array([2, 5])}
    check(model, lambda x, shape: (3 * shape[0] * x.sum(),), given, native=False)


def test_nested_loops_and_branches_read_values_around_them() -> None:
    model = parsed("""
    g (float[m] x, float[m] w) => (float[m] y, float[n, m] rows) {
        n = Constant <value = int64 {4}> ()
        two = Constant <value = int64 {2}> ()
        e = Exp (w)
        y, rows = Loop <body = b (int64 i, bool c, float[m] h) => (bool g, float[m] p, float[m] r) {
            g = Identity (c)
            f = CastLike (i, x)
            inner = Loop <body = d (int64 j, bool cc, float[m] s) => (bool gg, float[m] t) {
                gg = Identity (cc)
                k = CastLike (j, x)
                a = Mul (e, k)
                b = Add (a, f)
                t = Add (s, b)
            }> (i, , h)
            early = Less (i, two)
            p = If (early) <
                then_branch = t () => (float[m] o) { o = Mul (inner, w) },
                else_branch = u () => (float[m] q) { q = Sub (inner, e) }
            >
            r = Mul (p, f)
        }> (n, , x)
    }""")

    def meaning(x: Any, w: Any) -> tuple[Any, ...]:
        e, h, rows = np.exp(w), x, []
        for i in range(4):
            for j in range(i):
                h = h + (e * j + i)
            h = h * w if i < 2 else h - e
            rows.append(h * i)
        return h, rows

    check(model, meaning, {"x": x(), "w": x()}, {"x": x(17), "w": x(17)})
    (attrs,) = [n.attrs for n in import_onnx(model).nodes if isinstance(n.attrs, LoopAttrs)]
    assert attrs.carried == 1


def test_old_versions() -> None:
    for version in (1, 11, 13, 16):
        model = parsed("""
        g (float[m] x) => (float[m] y) {
            n = Constant <value = int64 {5}> ()
            true = Constant <value = bool {1}> ()
            y = Loop <body = b (int64 i, bool c, float[m] h) => (bool going, float[m] next) {
                going = Identity (c)
                next = Neg (h)
            }> (n, true, x)
        }""")
        model.opset_import[0].version = max(version, 7)
        check(model, lambda x: (-x,), {"x": x()})


def test_a_body_that_does_not_fit() -> None:
    model = parsed("""
    g (float[m] x) => (float[m] y) {
        n = Constant <value = int64 {5}> ()
        y = Loop <body = b (int64 i, bool c) => (bool going) { going = Identity (c) }> (n, , x)
    }""")
    with pytest.raises(FrontendError, match="takes 2 values and gives 1"):
        import_onnx(model)
