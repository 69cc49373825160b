"""Memory-bound kernels on a GPU beside torch: eager, and compiled by Inductor.

    python benchmarks/gpu/rows.py [--only softmax,gelu] [--peers eager,inductor] [--json rows.json]

Each kernel is run over several sets of inputs, together larger than the L2 cache, in one captured
graph; the figure is the median time of a replay for each set, between two events, behind another
replay, with the variants taking turns. Every result is compared with float64's. The share is that
of the bytes which must move (each input read once, each output written once) in the time of a copy
of as many.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from tilewright.core.dtypes import BF16, F16, F32, DType
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.runtime.cuda.executable import CudaExecutable

KINDS = {"bf16": (BF16, torch.bfloat16), "f16": (F16, torch.float16), "f32": (F32, torch.float32)}
# Bytes that the sets of inputs and outputs of one kernel have together at least.
ROTATED = 400 * 1024 * 1024
REPLAYS, WARM = 15, 3
# What the errors of 16-bit results may be, relative to the norm.
TOLERANCE = {"bf16": 5e-3, "f16": 1e-3, "f32": 2e-6}

Shapes = list[tuple[int, ...]]


@dataclass(frozen=True)
class Case:
    """A kernel: its operators for us, the same for torch, the shapes of its inputs."""

    name: str
    dtype: str
    shapes: Shapes
    build: Callable[[GraphBuilder, list[str]], str]
    torch: Callable[..., torch.Tensor]
    # how many times the usual error is allowed: where terms are many
    loose: float = 1.0
    precision: str = "f32"


def _op(g: GraphBuilder, op: str, *inputs: str, **values: Any) -> str:
    return g.add(op, *inputs, attrs=make_attrs(op, values) if values else None)


def _softmax(m: int, n: int, dtype: str) -> Case:
    return Case(
        f"softmax {m}x{n}",
        dtype,
        [(m, n)],
        lambda g, x: _op(g, "softmax", x[0], axis=-1),
        lambda x: torch.softmax(x, -1),
    )


def _layer_norm(m: int, n: int, dtype: str) -> Case:
    return Case(
        f"layernorm {m}x{n}",
        dtype,
        [(m, n), (n,), (n,)],
        lambda g, x: _op(g, "layer_norm", *x, axis=-1),
        lambda x, w, b: torch.nn.functional.layer_norm(x, x.shape[-1:], w, b),
    )


def _gelu(m: int, n: int, dtype: str) -> Case:
    return Case(
        f"bias+gelu+add {m}x{n}",
        dtype,
        [(m, n), (n,), (m, n)],
        lambda g, x: _op(g, "add", _op(g, "gelu", _op(g, "add", x[0], x[1])), x[2]),
        lambda x, b, y: torch.nn.functional.gelu(x + b) + y,
    )


def _sum(m: int, n: int, axes: tuple[int, ...], dtype: str) -> Case:
    word = {(1,): "sum of rows", (0,): "sum of columns", (0, 1): "sum of all"}[axes]
    return Case(
        f"{word} {m}x{n}",
        dtype,
        [(m, n)],
        lambda g, x: _op(g, "reduce_sum", x[0], axes=axes, keepdims=False),
        lambda x: x.sum(axes),
    )


def _transpose(m: int, n: int, dtype: str) -> Case:
    return Case(
        f"transpose {m}x{n}",
        dtype,
        [(m, n)],
        lambda g, x: _op(g, "transpose", x[0], perm=(1, 0)),
        lambda x: x.t().contiguous(),
    )


def _product(m: int, n: int, k: int, precision: str) -> Case:
    return Case(
        f"product {m}x{n}x{k}{' tf32' if precision == 'tf32' else ''}",
        "f32",
        [(m, k), (k, n)],
        lambda g, x: _op(g, "matmul", *x),
        torch.matmul,
        loose=500.0 if precision == "tf32" else 4.0,
        precision=precision,
    )


CASES = (
    _softmax(8192, 8192, "bf16"),
    _layer_norm(8192, 8192, "bf16"),
    _gelu(8192, 8192, "bf16"),
    _softmax(196608, 128, "bf16"),
    _layer_norm(196608, 128, "bf16"),
    _softmax(8192, 1000, "f32"),
    _layer_norm(8192, 768, "f32"),
    _sum(8192, 8192, (1,), "f32"),
    _sum(8192, 8192, (0,), "f32"),
    _sum(8192, 8192, (0, 1), "f32"),
    _transpose(8192, 8192, "f32"),
    _transpose(8192, 8192, "f16"),
    _product(4096, 4096, 4096, "f32"),
    _product(4096, 4096, 4096, "tf32"),
)


def _graph(case: Case) -> Graph:
    g = GraphBuilder("case")
    names = [
        g.input(f"x{n}", tensor(KINDS[case.dtype][0], *shape))
        for n, shape in enumerate(case.shapes)
    ]
    return g.graph(case.build(g, names))


def _ours(case: Case) -> CudaExecutable:
    given = {} if case.precision == "f32" else {"precision": case.precision}
    options = make_options(target="cuda", cache=False, **given)
    return CudaExecutable(compile_container(_graph(case), options))


def _sets(case: Case) -> list[list[torch.Tensor]]:
    kind: DType = KINDS[case.dtype][0]
    made = [torch.Size(s).numel() * kind.bytes for s in case.shapes]
    count = max(2, -(-ROTATED // sum(made)))
    return [
        [torch.randn(s, device="cuda").to(KINDS[case.dtype][1]) for s in case.shapes]
        for _ in range(count)
    ]


def _captured(run: Callable[[], None]) -> torch.cuda.CUDAGraph:
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(2):
            run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    return graph


def _time(graphs: dict[str, torch.cuda.CUDAGraph], count: int) -> dict[str, float]:
    """Median milliseconds of each graph for one of its sets; they take turns.

    Each comes behind itself: what is still to be written when a graph begins is its own.
    """
    times: dict[str, list[float]] = {name: [] for name in graphs}
    for turn in range(WARM + REPLAYS):
        for name, graph in graphs.items():
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            graph.replay()
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            if turn >= WARM:
                times[name].append(start.elapsed_time(end) / count)
    return {name: statistics.median(found) for name, found in times.items()}


def _difference(case: Case, inputs: list[torch.Tensor], found: torch.Tensor) -> float:
    """The error; of sums, which cancel, relative to those of the magnitudes."""
    exact = [x.double() for x in inputs]
    expected = case.torch(*exact)
    scale = case.torch(*(x.abs() for x in exact)) if case.name.startswith("sum") else expected
    return float((found.double() - expected).norm() / scale.norm())


def measure(case: Case, peers: list[str]) -> dict[str, Any]:
    """Check and time one kernel beside its peers."""
    torch.backends.cuda.matmul.allow_tf32 = case.precision == "tf32"
    sets = _sets(case)
    ours = _ours(case)
    found = ours(*sets[-1])
    # What is kept of a graph has memory of its own.
    kept: list[Any] = []
    runs: dict[str, Callable[[], Any]] = {"tilewright": lambda: kept.extend(ours(*x) for x in sets)}
    if "eager" in peers:
        runs["eager"] = lambda: [case.torch(*x) for x in sets]
    if "inductor" in peers:
        torch._dynamo.reset()
        compiled = torch.compile(case.torch)
        runs["inductor"] = lambda: [compiled(*x) for x in sets]
    moved = sum(x.nbytes for x in (*sets[0], found))
    source = torch.empty(moved // 2 * len(sets), dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    runs["copy"] = lambda: target.copy_(source)
    graphs = {name: _captured(run) for name, run in runs.items()}
    times = _time(graphs, len(sets))
    error = _difference(case, sets[-1], found)
    return {
        "ms": times,
        "error": error,
        "right": error <= case.loose * TOLERANCE[case.dtype],
        "bytes": moved,
        "tb_s": moved / times["tilewright"] / 1e9,
        "of_copy": times["copy"] / times["tilewright"],
        "ratio": min((times[p] for p in peers if p in times), default=0.0) / times["tilewright"],
    }


def main() -> None:
    """Measure what is asked for, print a table, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="")
    parser.add_argument("--peers", default="eager,inductor")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.manual_seed(5)
    results: dict[str, Any] = {}
    print(f"{'kernel':32} {'ours':>8} {'eager':>8} {'induct':>8} {'copy':>8} share ratio error")
    for case in CASES:
        if args.only and not any(word in case.name for word in args.only.split(",")):
            continue
        key = f"{case.name} {case.dtype}"
        try:
            row = results[key] = measure(case, args.peers.split(","))
        except Exception as error:  # one that fails must not hide the others
            results[key] = {"error": f"{type(error).__name__}: {error}"[:600]}
            print(key, results[key]["error"], flush=True)
            continue
        cells = (row["ms"].get(n) for n in ("tilewright", "eager", "inductor", "copy"))
        times = " ".join(f"{'-' if t is None else format(t, '.4f'):>8}" for t in cells)
        verdict = f"{row['error']:.1e}{'' if row['right'] else ' WRONG'}"
        shares = f"{row['of_copy']:5.2f} {row['ratio']:5.2f}"
        print(f"{key:32} {times} {shares} {verdict}", flush=True)
        torch.cuda.empty_cache()
        if args.json:
            args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
