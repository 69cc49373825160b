"""How the cost of compiling grows with the number of nodes: it must be linear.

    python benchmarks/scaling.py [shapes of model] [--nodes 1250,2500,5000,10000] [--json FILE]

Each model is made, then compiled in a process of its own without a cache. A table has the seconds
of processor time that each stage takes in the process, `cpu` what it and its workers take in all;
`MiB` is the most that the process had resident beyond an idle one. The last line is the exponent
of the growth from the first size to the last: 1 is linear, 2 quadratic.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from depth import OPSET, Encoder
from onnx import TensorProto, helper

from tilewright.core.worker.crash import reason

NODES = (1250, 2500, 5000, 10000)
WIDTH = 16

_WORKER = """
import json, resource, sys, time
time.perf_counter = time.process_time
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.driver.timings import Timings
from tilewright.runtime.cpu.executable import Executable
memory = lambda: next(int(l.split()[1]) for l in open("/proc/self/status") if l[:6] == "VmHWM:")
idle, timings = memory(), Timings()
container = compile_container(sys.argv[1], make_options(cache=False, timings=timings))
with timings.measure("load"):
    Executable(container)
used = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({
    "stages": timings.stages, "cpu": sum(u.ru_utime + u.ru_stime for u in used),
    "mib": (memory() - idle) / 1024,
    "passes": [(r.name, r.seconds) for r in timings.passes.records],
}))
"""


class Model(Encoder):
    """A model as it is written down, with its ports."""

    def __init__(self) -> None:
        super().__init__()
        self.inputs = [_port("x", ("N", WIDTH))]
        self.outputs: list[str] = []

    def proto(self, rows: int | str = 8) -> onnx.ModelProto:
        """The finished model; all outputs are of type f32."""
        inputs = [_port("x", (rows, WIDTH))]
        outputs = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in self.outputs]
        graph = helper.make_graph(self.nodes, "scaling", inputs, outputs, self.weights)
        versions = [helper.make_opsetid("", OPSET)]
        return helper.make_model(graph, opset_imports=versions, ir_version=10)


def _port(name: str, shape: tuple[int | str, ...]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def chain(nodes: int) -> onnx.ModelProto:
    """Elementwise operators one after another."""
    model, x = Model(), "x"
    ops = ("Relu", "Tanh", "Neg", "Abs", "Sigmoid")
    for i in range(nodes):
        x = model.add(ops[i % len(ops)], x)
    model.outputs = [x]
    return model.proto()


def dense(nodes: int) -> onnx.ModelProto:
    """Small linear layers, each with weights of its own."""
    model, x = Model(), "x"
    for _ in range(nodes // 3):
        x = model.add("Relu", model.linear(x, WIDTH, WIDTH))
    model.outputs = [x]
    return model.proto()


def residual(nodes: int) -> onnx.ModelProto:
    """A long chain of sums, each of the one before and something computed from it."""
    model, x = Model(), "x"
    for _ in range(nodes // 3):
        x = model.add(
            "Add", x, model.add("Tanh", model.add("MatMul", x, model.weight(WIDTH, WIDTH)))
        )
    model.outputs = [x]
    return model.proto()


def pointwise_residual(nodes: int) -> onnx.ModelProto:
    """A long chain of sums that are elementwise throughout."""
    model, x = Model(), "x"
    for _ in range(nodes // 2):
        x = model.add("Add", x, model.add("Tanh", x))
    model.outputs = [x]
    return model.proto()


def branches(nodes: int) -> onnx.ModelProto:
    """Many branches side by side, put together in the end."""
    model = Model()
    parts = [
        model.add(
            "Relu",
            model.add("Add", model.add("MatMul", "x", model.weight(WIDTH, 4)), model.weight(4)),
        )
        for _ in range(nodes // 3)
    ]
    model.outputs = [model.add("Concat", *parts, axis=1)]
    return model.proto()


def fan_out(nodes: int) -> onnx.ModelProto:
    """One value that every other node reads."""
    model = Model()
    hub = model.add("Tanh", "x")
    model.outputs = [model.add("Mul", hub, model.weight(WIDTH)) for _ in range(nodes)]
    return model.proto()


def summed(nodes: int) -> onnx.ModelProto:
    """One value that many nodes read, whose results are added up one after another."""
    model = Model()
    hub = model.add("Tanh", "x")
    total = hub
    for _ in range(nodes // 2):
        total = model.add("Add", total, model.add("Mul", hub, model.weight(WIDTH)))
    model.outputs = [total]
    return model.proto()


def shapes(nodes: int) -> onnx.ModelProto:
    """Shapes computed from shapes as exporters write them, of a symbolic size."""
    model, x = Model(), "x"
    zero, one = model.constant(np.array(0)), model.constant(np.array(1))
    axes, half = model.constant(np.array([0])), model.constant(np.array([2, WIDTH // 2]))
    for _ in range(nodes // 11):
        shape = model.add("Shape", x)
        rows = model.add("Unsqueeze", model.add("Gather", shape, zero), axes)
        wide = model.add("Unsqueeze", model.add("Gather", shape, one), axes)
        apart = model.add("Reshape", x, model.add("Concat", rows, half, axis=0))
        joined = model.add(
            "Reshape", model.add("Tanh", apart), model.add("Concat", rows, wide, axis=0)
        )
        x = model.add("MatMul", joined, model.weight(WIDTH, WIDTH))
    model.outputs = [x]
    return model.proto("N")


def blocks(nodes: int) -> onnx.ModelProto:
    """The layers of a transformer."""
    model, x = Model(), "x"
    x = model.add(
        "MatMul",
        model.add("Expand", x, model.constant(np.array([64, WIDTH]))),
        model.weight(WIDTH, 128),
    )
    for _ in range(nodes // 29):
        x = model.layer(x)
    model.outputs = [x]
    return model.proto(1)


def convolutions(nodes: int) -> onnx.ModelProto:
    """Convolutions with sums of what came before, between which layouts are chosen."""
    model = Model()
    x = model.add("Reshape", "x", model.constant(np.array([1, 8, 4, 4])))
    for _ in range(nodes // 3):
        y = model.add("Conv", x, model.weight(8, 8, 3, 3), model.weight(8), pads=[1, 1, 1, 1])
        x = model.add("Add", x, model.add("Relu", y))
    model.outputs = [x]
    return model.proto()


def backwards(nodes: int) -> onnx.ModelProto:
    """A chain whose nodes are listed last first, as ONNX does not allow."""
    model = dense(nodes)
    listed = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend(reversed(listed))
    return model


def rearranged(nodes: int) -> onnx.ModelProto:
    """Reshapes and transposes one after another, with sums between."""
    model, x = Model(), "x"
    flat, wide = (model.constant(np.array(s)) for s in ([-1], [WIDTH, -1]))
    for _ in range(nodes // 4):
        turned = model.add(
            "Transpose", model.add("Reshape", model.add("Reshape", x, flat), wide), perm=[1, 0]
        )
        x = model.add("Add", turned, model.weight(WIDTH))
    model.outputs = [x]
    return model.proto()


def layered(nodes: int) -> onnx.ModelProto:
    """Layers that each read all of the ten before them."""
    model = Model()
    recent = ["x"]
    for _ in range(nodes // 2):
        joined = model.add("Concat", *recent, axis=1) if len(recent) > 1 else recent[0]
        y = model.add("MatMul", joined, model.weight(WIDTH * len(recent), WIDTH))
        recent = [*recent, y][-10:]
    model.outputs = [recent[-1]]
    return model.proto()


def distinct(nodes: int) -> onnx.ModelProto:
    """Nodes of which no two have the same shapes."""
    model = Model()
    for i in range(nodes // 2):
        shape = model.constant(np.array([i + 1, 8, WIDTH]))
        model.outputs.append(model.add("Tanh", model.add("Expand", "x", shape)))
    return model.proto()


MODELS: dict[str, Callable[[int], onnx.ModelProto]] = {
    f.__name__: f
    for f in (
        chain, dense, residual, pointwise_residual, branches, fan_out, summed, shapes, blocks,
        convolutions, backwards, rearranged, layered, distinct,
    )
}  # fmt: skip


def measure(name: str, nodes: int) -> dict[str, Any]:
    """One model, compiled in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(MODELS[name](nodes).SerializeToString())
        command = [sys.executable, "-c", _WORKER, str(path)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": reason(done.stderr) or "no message"}
    return json.loads(done.stdout)


def report(name: str, sizes: list[int]) -> list[dict[str, Any]]:
    """The table of one kind of model."""
    rows: list[dict[str, Any]] = []
    for nodes in sizes:
        found = measure(name, nodes)
        if "failed" in found:
            print(f"{name:20} {nodes:6}  failed: {found['failed']}", flush=True)
            continue
        row = {"model": name, "nodes": nodes, **found}
        if not rows:
            titles = "".join(f"{t[:12]:>13}" for t in (*row["stages"], "cpu", "MiB"))
            print(f"{name:20} {'nodes':>6} {titles}")
        rows.append(row)
        print(f"{'':20} {nodes:6} {''.join(f'{v:13.2f}' for v in _figures(row))}", flush=True)
    if len(rows) > 1:
        first, last = rows[0], rows[-1]
        times = math.log(last["nodes"] / first["nodes"])
        pairs = zip(_figures(first), _figures(last), strict=True)
        grown = (math.log(max(b, 1e-3) / max(a, 1e-3)) / times for a, b in pairs)
        print(f"{'':20} {'growth':>6} {''.join(f'{g:13.2f}' for g in grown)}", flush=True)
    return rows


def _figures(row: dict[str, Any]) -> list[float]:
    return [*row["stages"].values(), row["cpu"], row["mib"]]


def main() -> None:
    """Measure, print tables, write JSON if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help=f"of {', '.join(MODELS)} (default: all)")
    parser.add_argument("--nodes", default=",".join(map(str, NODES)))
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    sizes = [int(n) for n in args.nodes.split(",")]
    rows = [row for name in args.models or MODELS for row in report(name, sizes)]
    if args.json:
        args.json.write_text(json.dumps({"results": rows}, indent=1))


if __name__ == "__main__":
    main()
