"""Random nodes with arguments that may be impossible, beside ONNX Runtime.

    python -m tests.differential.argument_cases --count 500 --seed 7

Where ONNX Runtime gives a result, ours is the same; where it refuses, we refuse with an error that
names the node or the input. Arguments are constants, or inputs that are known only at run time;
sizes may be symbolic.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import tilewright as tw
from tests.frontends.onnx.convert.run_node import node_model, reference

Array = np.ndarray | None
Draw = Callable[[np.random.Generator], "NodeCase"]
KINDS = ("constant", "run time", "symbolic")


@dataclass(frozen=True)
class NodeCase:
    """A node's operator, its inputs, and which of them are arguments rather than data."""

    op: str
    inputs: tuple[Array, ...]
    arguments: tuple[int, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    kind: str = ""

    def settings(self) -> dict[str, Any]:
        """How the model of the case is made."""
        if self.kind == "constant":
            return {**self.options, "constants": self.arguments}
        if self.kind == "run time":
            return self.options
        # The number of arguments is always known, only sizes of data are not.
        data = [(n, x) for n, x in enumerate(self.inputs) if n not in self.arguments]
        dims = {n: [f"d{n}_{a}" for a in range(x.ndim)] for n, x in data if x is not None}
        return {**self.options, "dims": dims}


def _data(*shape: int) -> np.ndarray:
    return (np.arange(np.prod(shape)) + 1).astype(np.float32).reshape(shape)


def _ints(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def _size(rng: np.random.Generator, low: int = 1) -> int:
    return int(rng.integers(low, 6))


def _reverse_sequence(rng: np.random.Generator) -> NodeCase:
    batch, time = _size(rng), _size(rng)
    lengths = rng.integers(-1 if rng.random() < 0.3 else 0, time + 2, batch)
    options = {"batch_axis": 0, "time_axis": 1}
    return NodeCase("ReverseSequence", (_data(batch, time, 2), _ints(lengths)), (), options)


def _one_hot(rng: np.random.Generator) -> NodeCase:
    depth = int(rng.integers(-1, 5))
    indices, values = _ints(rng.integers(-6, 7, 4)), np.array([2, 7], np.float32)
    return NodeCase("OneHot", (indices, _ints(depth), values), (1,))


def _split(rng: np.random.Generator) -> NodeCase:
    size, count = _size(rng), int(rng.integers(2, 4))
    options: dict[str, Any] = {"outputs": count}
    if rng.random() < 0.4:
        new = rng.random() < 0.5
        options |= {"num_outputs": count} if new else {"opset": 13}
        return NodeCase("Split", (_data(size, 3),), (), options)
    parts = rng.multinomial(size, [1 / count] * count)
    if rng.random() < 0.5:
        parts[0] += rng.integers(-2, 3)
    return NodeCase("Split", (_data(size, 3), _ints(parts)), (1,), options)


def _topk(rng: np.random.Generator) -> NodeCase:
    size = _size(rng)
    k = _ints([rng.integers(-1, size + 2)])
    return NodeCase("TopK", (_data(2, size), k), (1,), {"outputs": 2})


def _range(rng: np.random.Generator) -> NodeCase:
    numbers = tuple(_ints(v) for v in rng.integers(-4, 9, 2))
    return NodeCase("Range", (*numbers, _ints(rng.integers(-2, 3))), (0, 1, 2))


def _cumsum(rng: np.random.Generator) -> NodeCase:
    return NodeCase("CumSum", (_data(2, 3), _ints(rng.integers(-4, 4))), (1,))


def _pad(rng: np.random.Generator) -> NodeCase:
    mode = str(rng.choice(["constant", "reflect", "edge", "wrap"]))
    amounts = _ints(rng.integers(-3, 5, 4))
    inputs = (_data(_size(rng), _size(rng)), amounts)
    return NodeCase("Pad", inputs, (1,), {"mode": mode})


def _slice(rng: np.random.Generator) -> NodeCase:
    bounds = [_ints(rng.integers(-8, 9, 2)) for _ in range(2)]
    axes, steps = _ints(rng.integers(-2, 2, 2)), _ints(rng.integers(-2, 3, 2))
    return NodeCase("Slice", (_data(_size(rng), _size(rng)), *bounds, axes, steps), (1, 2, 3, 4))


def _expand(rng: np.random.Generator) -> NodeCase:
    x = _data(*(int(v) for v in rng.choice([1, 1, 2, 3], 2)))
    wanted = rng.choice([0, 1, 2, 3], int(rng.integers(1, 4)), p=[0.1, 0.3, 0.3, 0.3])
    return NodeCase("Expand", (x, _ints(wanted)), (1,))


def _reshape(rng: np.random.Generator) -> NodeCase:
    wanted = rng.choice([-1, 0, 2, 3, 4, 6, 12], int(rng.integers(1, 4)))
    return NodeCase("Reshape", (_data(3, 4), _ints(wanted)), (1,))


def _tile(rng: np.random.Generator) -> NodeCase:
    repeats = _ints(rng.integers(-1, 4, 2 if rng.random() < 0.8 else 3))
    return NodeCase("Tile", (_data(_size(rng), 2), repeats), (1,))


def _resize(rng: np.random.Generator) -> NodeCase:
    x = _data(1, 1, _size(rng), _size(rng))
    options = {"mode": str(rng.choice(["nearest", "linear"]))}
    if rng.random() < 0.5:
        sizes = _ints([1, 1, *rng.integers(-1, 7, 2)])
        return NodeCase("Resize", (x, None, None, sizes), (3,), options)
    scales = np.array([1, 1, *rng.choice([-1, 0, 0.5, 1, 2, 3], 2)], np.float32)
    return NodeCase("Resize", (x, None, scales), (2,), options)


def _non_max_suppression(rng: np.random.Generator) -> NodeCase:
    count = _size(rng)
    corners = rng.random((1, count, 4), dtype=np.float32)
    scores = rng.permutation(count).astype(np.float32).reshape(1, 1, count)
    limits = (
        _ints([rng.choice([-1, 0, 2, 100])]),
        rng.choice([-0.5, 0, 0.5, 1, 1.5, np.nan], 1).astype(np.float32),
        rng.choice([0, 0.5], 1).astype(np.float32),
    )
    options = {"center_point_box": int(rng.choice([0, 0, 1, 2]))}
    return NodeCase("NonMaxSuppression", (corners, scores, *limits), (2, 3, 4), options)


def _unique(rng: np.random.Generator) -> NodeCase:
    x = rng.integers(0, 3, (3, 2)).astype(np.float32)
    return NodeCase("Unique", (x,), (), {"axis": int(rng.integers(-3, 3)), "outputs": 4})


def _compress(rng: np.random.Generator) -> NodeCase:
    x, chosen = _data(_size(rng), 2), rng.random(int(rng.integers(0, 8))) < 0.5
    return NodeCase("Compress", (x, chosen), (1,), {"axis": int(rng.integers(-3, 3))})


def _trilu(rng: np.random.Generator) -> NodeCase:
    k = rng.choice([-(2**63), -9, -1, 0, 2, 9, 2**63 - 1])
    options = {"upper": int(rng.integers(2))}
    return NodeCase("Trilu", (_data(_size(rng), _size(rng)), _ints(k)), (1,), options)


def _depth_to_space(rng: np.random.Generator) -> NodeCase:
    op = str(rng.choice(["DepthToSpace", "SpaceToDepth"]))
    x = _data(1, int(rng.choice([3, 4, 8])), 2, 4)
    return NodeCase(op, (x,), (), {"blocksize": int(rng.integers(-1, 4))})


def _eye_like(rng: np.random.Generator) -> NodeCase:
    shape = (_size(rng),) * int(rng.choice([1, 2, 2, 2, 3]))
    return NodeCase("EyeLike", (_data(*shape),), (), {"k": int(rng.integers(-9, 9))})


def _multinomial(rng: np.random.Generator) -> NodeCase:
    # With one class that is possible, what is drawn is known.
    x = np.full((2, _size(rng)), -1e30, np.float32)
    x[:, -1] = 0
    options = {"sample_size": int(rng.integers(-1, 4)), "dtype": int(rng.choice([1, 6, 7]))}
    return NodeCase("Multinomial", (x,), (), options)


def _squeeze(rng: np.random.Generator) -> NodeCase:
    op = str(rng.choice(["Squeeze", "Unsqueeze"]))
    axes = rng.integers(-4, 4, int(rng.integers(1, 3)))
    return NodeCase(op, (_data(2, 1, 1), _ints(axes)), (1,))


def _max_unpool(rng: np.random.Generator) -> NodeCase:
    places = rng.permutation(16)[:4] + (rng.integers(-8, 8) if rng.random() < 0.5 else 0)
    inputs = (_data(1, 1, 2, 2), _ints(places).reshape(1, 1, 2, 2))
    return NodeCase("MaxUnpool", inputs, (), {"kernel_shape": [2, 2], "strides": [2, 2]})


def _argmax(rng: np.random.Generator) -> NodeCase:
    return NodeCase("ArgMax", (_data(_size(rng), 3),), (), {"axis": int(rng.integers(-3, 3))})


def _reduce(rng: np.random.Generator) -> NodeCase:
    axes = rng.integers(-3, 3, int(rng.integers(0, 3)))
    return NodeCase("ReduceSum", (_data(2, 3), _ints(axes)), (1,))


DRAWS: tuple[Draw, ...] = (
    _reverse_sequence,
    _one_hot,
    _split,
    _topk,
    _range,
    _cumsum,
    _pad,
    _slice,
    _expand,
    _reshape,
    _tile,
    _resize,
    _non_max_suppression,
    _unique,
    _compress,
    _trilu,
    _depth_to_space,
    _eye_like,
    _multinomial,
    _squeeze,
    _max_unpool,
    _argmax,
    _reduce,
)


def random_cases(seed: int, count: int) -> Iterator[NodeCase]:
    """So many cases, each operator and each kind as often as the others."""
    rng = np.random.default_rng(seed)
    for n in range(count):
        case = DRAWS[n % len(DRAWS)](rng)
        kind = KINDS[n // len(DRAWS) % len(KINDS)]
        yield NodeCase(case.op, case.inputs, case.arguments, case.options, kind)


def fault_of(case: NodeCase) -> str:
    """What is wrong about how a case is treated; "" if nothing is."""
    expected = _outcome(lambda: reference(case.op, case.inputs, **case.settings()))
    try:
        found: Any = _ours(case)
    except tw.Error as error:
        if expected is not None:
            return f"refused, which gives {expected}: {error}"
        names = ("node node", "node:", "input x", "output 'y")
        return "" if any(name in str(error) for name in names) else f"names nothing: {error}"
    if expected is None:
        return f"gives {found}, which is to be refused"
    return "" if _agree(found, expected) else f"gives {found}, not {expected}"


def _ours(case: NodeCase) -> list[np.ndarray]:
    model = node_model(case.op, case.inputs, **case.settings())
    with tw.compile(model, threads=1, cache=False) as compiled:
        wanted = {port.name for port in compiled.inputs}
        given = {f"x{i}": x for i, x in enumerate(case.inputs) if f"x{i}" in wanted}
        return list(compiled.run(given).values())


def _outcome(call: Callable[[], list[np.ndarray]]) -> list[np.ndarray] | None:
    """What a call gives, `None` if it is refused."""
    try:
        return call()
    except Exception:  # ONNX Runtime's errors have no common class
        return None


def _agree(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> bool:
    return len(found) == len(expected) and all(
        a.dtype == b.dtype and a.shape == b.shape and np.allclose(a, b, 1e-4, 1e-5)
        for a, b in zip(found, expected, strict=True)
    )


def main() -> None:
    """Print the faults among random cases."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    faults = 0
    for case in random_cases(given.seed, given.count):
        fault = fault_of(case)
        faults += bool(fault)
        if fault:
            print(f"{case}\n    {fault}")
    print(f"{given.count} cases, {faults} faults")


if __name__ == "__main__":
    main()
