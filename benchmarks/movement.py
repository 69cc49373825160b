"""Operators that move more than they compute: bytes per second, beside what a copy reaches.

    python benchmarks/movement.py                     # all, on one thread
    python benchmarks/movement.py transpose resize    # those whose names contain one of these

Each engine runs in this process, in turns, on one thread; a figure is the least processor time of
many runs. Bytes are those of the operands and the result, each counted once; of a table that is
looked up, all. The roof is the bandwidth of the nearest cache that holds them all, as measured by
`tilewright.runtime.roofline.roofline`.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
import openvino
from onnx import helper, numpy_helper

import tilewright
from tilewright.runtime.roofline.machine_roofline import machine_roofline

OPSET = 18
SECONDS = 0.1  # for each engine and turn
TURNS = 4


@dataclass
class Move:
    """One operator: its operands, those that are constants by name, and its attributes."""

    name: str
    op: str
    inputs: list[np.ndarray]
    constants: dict[int, np.ndarray] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)
    outputs: int = 1

    def model(self) -> onnx.ModelProto:
        """The ONNX model; operands keep their places, constants between them or not."""
        count = len(self.inputs) + len(self.constants)
        places = [i for i in range(max([count, *(k + 1 for k in self.constants)]))]
        free = iter([i for i in places if i not in self.constants])
        given = {f"x{next(free)}": a for a in self.inputs}
        names = [f"x{i}" if f"x{i}" in given or i in self.constants else "" for i in places]
        values = [
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for n, a in given.items()
        ]
        results = [f"y{i}" for i in range(self.outputs)]
        node = helper.make_node(self.op, names, results, **self.attributes)
        known = [numpy_helper.from_array(a, f"x{i}") for i, a in self.constants.items()]
        graph = helper.make_graph([node], self.name, values, [], known)
        graph.output.extend(onnx.ValueInfoProto(name=r) for r in results)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
        return onnx.shape_inference.infer_shapes(model, data_prop=True)

    def arrays(self) -> dict[str, np.ndarray]:
        """The operands by name."""
        return {v.name: a for v, a in zip(self.model().graph.input, self.inputs, strict=True)}


def _random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _transpose(perm: Sequence[int], *shape: int) -> Move:
    name = f"transpose_{'x'.join(map(str, shape))}_{''.join(map(str, perm))}"
    return Move(name, "Transpose", [_random(*shape)], attributes={"perm": perm})


def _resize(mode: str, size: int, channels: int, to: int, **attributes: Any) -> Move:
    name = f"resize_{mode}_{channels}x{size}_{to}"
    scales = np.array([1, 1, to / size, to / size], np.float32)
    attributes["mode"] = mode
    return Move(name, "Resize", [_random(1, channels, size, size)], {2: scales}, attributes)


def _pool(op: str, size: int, channels: int, window: int, stride: int) -> Move:
    name = f"{op.lower()}_{channels}x{size}_{window}s{stride}"
    pads = [(window - 1) // 2] * 4
    sizes = {"kernel_shape": [window] * 2, "strides": [stride] * 2, "pads": pads}
    return Move(name, op, [_random(1, channels, size, size)], attributes=sizes)


def _reduce(op: str, axes: Sequence[int], *shape: int) -> Move:
    name = f"{op.lower()}_{'x'.join(map(str, shape))}_{''.join(map(str, axes))}"
    return Move(name, op, [_random(*shape)], {1: _ints(*axes)}, {"keepdims": 0})


def _moves() -> Iterator[Move]:
    yield _transpose((1, 0), 3, 50176)
    yield _transpose((1, 0), 50176, 3)
    yield _transpose((1, 0), 777, 1000)
    yield _transpose((0, 2, 3, 1), 1, 64, 56, 56)
    yield _transpose((0, 3, 1, 2), 1, 56, 56, 64)
    yield _transpose((0, 2, 3, 1), 1, 3, 224, 224)
    yield _transpose((0, 3, 1, 2), 1, 224, 224, 3)
    yield _transpose((0, 2, 1, 3), 1, 128, 12, 64)
    yield _transpose((0, 2, 3, 1), 1, 128, 12, 64)
    yield _transpose((0, 1, 4, 2, 5, 3), 1, 32, 2, 2, 56, 56)
    yield _resize("nearest", 28, 64, 56)
    yield _resize("linear", 28, 64, 56)
    yield _resize("linear", 56, 16, 98, coordinate_transformation_mode="align_corners")
    yield _resize("cubic", 28, 64, 56)
    yield Move("pad_64x56_1", "Pad", [_random(1, 64, 56, 56)], {1: _ints(0, 0, 1, 1, 0, 0, 1, 1)})
    pads = _ints(0, 0, 3, 3, 0, 0, 3, 3)
    yield Move("pad_reflect_3", "Pad", [_random(1, 64, 56, 56)], {1: pads}, {"mode": "reflect"})
    yield Move("tile_64x64_4x4", "Tile", [_random(64, 64)], {1: _ints(4, 4)})
    yield Move("expand_64x1x196", "Expand", [_random(64, 1, 196)], {1: _ints(64, 12, 196)})
    yield _pool("MaxPool", 112, 64, 3, 2)
    yield _pool("MaxPool", 56, 64, 2, 2)
    yield _pool("AveragePool", 28, 128, 3, 1)
    yield _pool("AveragePool", 56, 64, 2, 2)
    yield Move("globalaverage_256x14", "GlobalAveragePool", [_random(1, 256, 14, 14)])
    yield from _reductions()


def _reductions() -> Iterator[Move]:
    for width in (10, 128, 1000):
        yield Move(f"softmax_512x{width}", "Softmax", [_random(512, width)])
    yield Move("softmax_axis1", "Softmax", [_random(1, 21, 64, 64)], attributes={"axis": 1})
    wide = {1: _random(768), 2: _random(768)}
    yield Move("layernorm_128x768", "LayerNormalization", [_random(128, 768)], wide)
    deep = {1: _random(64), 2: _random(64)}
    yield Move("instancenorm_64x56", "InstanceNormalization", [_random(1, 64, 56, 56)], deep)
    still = {1: deep[1], 2: deep[2], 3: deep[1], 4: np.abs(deep[2]) + 1}
    yield Move("batchnorm_64x56", "BatchNormalization", [_random(1, 64, 56, 56)], still)
    yield _reduce("ReduceSum", (1,), 512, 1000)
    yield _reduce("ReduceSum", (0,), 512, 1000)
    yield _reduce("ReduceMax", (1,), 512, 1000)
    yield _reduce("ReduceMean", (2, 3), 1, 256, 28, 28)
    yield _reduce("ReduceMean", (1,), 1, 196, 768)
    yield _reduce("ReduceMax", (0, 2), 32, 64, 128)
    for axis, shape in ((-1, (512, 1000)), (1, (1, 21, 128, 128))):
        name = f"argmax_{'x'.join(map(str, shape))}_{axis}"
        yield Move(name, "ArgMax", [_random(*shape)], attributes={"axis": axis})
    yield Move("topk_64x1000_10", "TopK", [_random(64, 1000)], {1: _ints(10)}, outputs=2)
    yield Move("cumsum_128x1000_1", "CumSum", [_random(128, 1000)], {1: np.array(1)})
    yield Move("cumsum_128x1000_0", "CumSum", [_random(128, 1000)], {1: np.array(0)})
    rows = np.random.default_rng(1).integers(0, 30000, (1, 128))
    yield Move("gather_30000x768", "Gather", [rows], {0: _random(30000, 768)})
    yield Move("gather_columns", "Gather", [_random(256, 768), rows % 768], {}, {"axis": 1})


Run = Callable[[], Any]


def _tilewright(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> Run:
    run = tilewright.compile(model, threads=1)
    return lambda: run(**inputs)


def _onnxruntime(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> Run:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return lambda: session.run(None, inputs)


def _openvino(model: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> Run:
    core = openvino.Core()
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    request = core.compile_model(
        core.read_model(model.SerializeToString()), "CPU", settings
    ).create_infer_request()
    for number, array in enumerate(inputs.values()):
        request.set_input_tensor(number, openvino.Tensor(array, shared_memory=True))
    return request.infer


ENGINES = {"tilewright": _tilewright, "onnxruntime": _onnxruntime, "openvino": _openvino}


def _least(run: Run) -> float:
    """The least processor time of a run, in microseconds."""
    run()
    best, until = math.inf, time.perf_counter() + SECONDS
    while time.perf_counter() < until:
        start = time.thread_time_ns()
        run()
        best = min(best, (time.thread_time_ns() - start) / 1e3)
    return best


def measure(move: Move, engines: Sequence[str]) -> tuple[int, dict[str, float]]:
    """The bytes that an operator moves, and the microseconds that each engine takes."""
    model, inputs = move.model(), move.arrays()
    runs = {name: ENGINES[name](model, inputs) for name in engines}
    results = _onnxruntime(model, inputs)()
    found = runs["tilewright"]() if "tilewright" in runs else results
    for ours, theirs in zip(found if move.outputs > 1 else [found], results, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=1e-3, err_msg=move.name)
    read = [*move.inputs, *move.constants.values()]
    moved = sum(a.nbytes for a in results) + sum(a.nbytes for a in read)
    times = dict.fromkeys(engines, math.inf)
    for _ in range(TURNS):
        for name, run in runs.items():
            times[name] = min(times[name], _least(run))
    return moved, times


def main() -> None:
    """Measure the operators named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of names (default: all)")
    parser.add_argument("--engines", default=",".join(ENGINES))
    arguments = parser.parse_args()
    engines = arguments.engines.split(",")
    roofline = machine_roofline(1)
    heads = " ".join(f"{name:>12} us    GB/s" for name in engines)
    print(f"{'':34}{'KiB':>7} {'roof':>6} {heads}")
    for move in _moves():
        if arguments.words and not any(word in move.name for word in arguments.words):
            continue
        moved, times = measure(move, engines)
        cells = " ".join(f"{us:>15.1f} {moved / us / 1e3:>7.1f}" for us in times.values())
        roof = roofline.level(moved).bytes_per_second / 1e9
        print(f"{move.name:34}{moved // 1024:>7} {roof:>6.1f} {cells}", flush=True)


if __name__ == "__main__":
    main()
