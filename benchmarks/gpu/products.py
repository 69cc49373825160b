"""Products of matrices in bf16, f16 and 8-bit integers on a GPU, beside cuBLAS by way of torch.

    python benchmarks/gpu/products.py [--json results.json] [--only 4096] [--shapes 40]

Every row is checked against the product in f64. `rotated` is the time of one product among several
whose operands together are larger than the L2, in one captured graph; `single` that of the replay
of a graph with one product on the same operands again and again. Medians, in milliseconds. With
`--shapes`, as many random shapes of 16 bits are checked besides; for integers see `integers.py`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from tilewright.core.dtypes import BF16, F16, I8, DType
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.executable import CudaExecutable

# Operands of all products in a graph have so many bytes together, in at most so many sets.
ROTATED_BYTES = 200 << 20
MAX_SETS = 48
REPLAYS = 30
# Relative to the norm of the result; sums of integers are exact.
TOLERANCE = {"bf16": 1e-2, "f16": 1e-2, "i8": 0.0}
WORKERS = 12
SEED = 5
# Types of operands, ours and torch's, and torch's of the result.
KINDS: dict[str, tuple[DType, torch.dtype, torch.dtype]] = {
    "bf16": (BF16, torch.bfloat16, torch.bfloat16),
    "f16": (F16, torch.float16, torch.float16),
    "i8": (I8, torch.int8, torch.int32),
}


Operands = tuple[torch.Tensor, torch.Tensor]
Launch = Callable[[int], object]


@dataclass(frozen=True)
class Row:
    """One product: sizes, type, whether the second operand lies transposed, what follows."""

    m: int
    n: int
    k: int
    kind: str = "bf16"
    turned: bool = False
    gelu: bool = False

    @property
    def name(self) -> str:
        """What it is called in the table."""
        extra = f"{' nt' if self.turned else ''}{' gelu' if self.gelu else ''}"
        return f"{self.m}x{self.n}x{self.k} {self.kind}{extra}"


ROWS = (
    Row(4096, 4096, 4096),
    Row(4096, 4096, 4096, turned=True),
    Row(8192, 8192, 8192),
    Row(512, 3072, 768),
    Row(512, 3072, 768, gelu=True),
    Row(128, 768, 3072),
    Row(128, 768, 3072, kind="f16", turned=True),
    Row(1, 4096, 4096),
    Row(512, 11008, 4096, turned=True),
    Row(1152, 4096, 8192, turned=True),
    Row(2048, 1280, 8192, turned=True),
    Row(4096, 4096, 4096, kind="i8", turned=True),
    Row(512, 3072, 768, kind="i8", turned=True),
    Row(128, 768, 3072, kind="i8", turned=True),
)


def graph_of(row: Row) -> Graph:
    """The product as a model of two inputs."""
    dtype = KINDS[row.kind][0]
    b = GraphBuilder("product")
    x = b.input("x", tensor(dtype, row.m, row.k))
    w = b.input("w", tensor(dtype, *((row.n, row.k) if row.turned else (row.k, row.n))))
    if row.turned:
        w = b.add("transpose", w, attrs=make_attrs("transpose", {"perm": (1, 0)}))
    y = b.add("matmul_i32acc" if row.kind == "i8" else "matmul", x, w)
    return b.graph(b.add("gelu", y) if row.gelu else y)


def compiled(row: Row) -> tuple[Row, Container | str, float]:
    """The product for the GPU, or what went wrong, and the seconds that took."""
    start = time.perf_counter()
    try:
        found: Container | str = compile_container(
            graph_of(row), make_options(target="cuda", cache=False)
        )
    except Exception as error:  # told where the others are
        found = f"{type(error).__name__}: {error}"[:500]
    return row, found, time.perf_counter() - start


def torch_product(row: Row, x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """What torch computes for a row."""
    y = x @ (w.T if row.turned else w)
    return torch.nn.functional.gelu(y) if row.gelu else y


class Ours:
    """A compiled product on several sets of operands, each with a result that is kept."""

    def __init__(self, container: Container, sets: Sequence[Operands]) -> None:
        self.model = CudaExecutable(container)
        self.sets = sets
        self.results: list[torch.Tensor | None] = [None] * len(sets)

    def result(self, operands: Operands, like: torch.dtype) -> torch.Tensor:
        """What comes of a set."""
        found = self.model(*operands)
        assert isinstance(found, torch.Tensor)
        return found.view(like)

    def launch(self, number: int) -> None:
        """One product in torch's current stream, which may be captured."""
        self.results[number] = self.model(*self.sets[number])

    def close(self) -> None:
        """Give the memory back."""
        self.results = []
        self.model.close()


def captured(launch: Launch, count: int) -> torch.cuda.CUDAGraph:
    """A graph of so many launches."""
    for _ in range(3):  # libraries make their choices before
        launch(0)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for number in range(count):
            launch(number)
    return graph


def medians(graphs: list[torch.cuda.CUDAGraph], count: int) -> list[float]:
    """Milliseconds of one launch in each graph of so many; their replays take turns."""
    times: list[list[float]] = [[] for _ in graphs]
    for graph in graphs:
        graph.replay()
    for _ in range(REPLAYS):
        for graph, found in zip(graphs, times, strict=True):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            graph.replay()
            end.record()
            end.synchronize()
            found.append(start.elapsed_time(end) / count)
    return [statistics.median(found) for found in times]


def median_time(launch: Launch, count: int) -> float:
    """Milliseconds of one launch, by replays of a graph of so many."""
    return medians([captured(launch, count)], count)[0]


def difference(found: torch.Tensor, row: Row, operands: Operands) -> float:
    """How far a result is from that in f64, relative to its norm."""
    x, w = (t.double() for t in operands)  # in which sums of integers are exact, too
    right = torch_product(row, x, w)
    return float(torch.linalg.norm(found.double() - right) / torch.linalg.norm(right))


def random_set(row: Row) -> Operands:
    """Random operands on the GPU."""
    shape = (row.n, row.k) if row.turned else (row.k, row.n)
    kind = KINDS[row.kind][1]
    if not kind.is_floating_point:
        about = torch.iinfo(kind)
        sides = ((row.m, row.k), shape)
        x, w = (torch.randint(about.min, about.max + 1, s, device="cuda") for s in sides)
        return x.to(kind), w.to(kind)
    x = torch.randn(row.m, row.k, device="cuda", dtype=torch.float32)
    w = torch.randn(*shape, device="cuda", dtype=torch.float32) / row.k**0.5
    return x.to(kind), w.to(kind)


def measure(row: Row, container: Container) -> dict[str, Any]:
    """Check and time one row beside torch."""
    _, kind, made = KINDS[row.kind]
    one = kind.itemsize * (row.m * row.k + row.k * row.n) + made.itemsize * row.m * row.n
    count = min(MAX_SETS, max(1, -(-ROTATED_BYTES // one)))
    sets = [random_set(row) for _ in range(count)]
    ours = Ours(container, sets)
    found = ours.result(sets[0], made)
    outs = [torch.empty(row.m, row.n, device="cuda", dtype=made) for _ in sets]
    multiply = torch.mm if kind.is_floating_point else torch._int_mm

    def theirs(number: int) -> None:
        x, w = sets[number]
        y = multiply(x, w.T if row.turned else w, out=outs[number])
        if row.gelu:
            torch.nn.functional.gelu(y)

    result: dict[str, Any] = {"difference": difference(found, row, sets[0]), "sets": count}
    for word, launch in (("ours", ours.launch), ("torch", theirs)):
        result[f"{word}_rotated"] = median_time(launch, count)
        result[f"{word}_single"] = median_time(launch, 1)
    flops = 2 * row.m * row.n * row.k
    result["tflops"] = flops / result["ours_rotated"] / 1e9
    result["torch_tflops"] = flops / result["torch_rotated"] / 1e9
    result["ratio"] = result["torch_rotated"] / result["ours_rotated"]
    result["right"] = result["difference"] <= TOLERANCE[row.kind]
    ours.close()
    return result


def random_rows(count: int) -> list[Row]:
    """Products of random sizes, types and layouts."""
    rng = np.random.default_rng(SEED)
    found = []
    for number in range(count):
        m, n, k = (int(2 ** rng.uniform(2.5, 10)) for _ in range(3))
        if number % 4 == 0:  # large enough for blocks that stay
            m, n, k = 2 * m, -(-n // 8) * 32, -(-k // 8) * 64
        elif rng.random() < 0.5:
            n, k = -(-n // 8) * 8, -(-k // 8) * 8
        kind = ("bf16", "f16")[int(rng.integers(2))]
        found.append(Row(m, n, k, kind, bool(rng.integers(2)), bool(rng.integers(2))))
    return found


def check(row: Row, container: Container) -> dict[str, Any]:
    """Check one row."""
    operands = random_set(row)
    ours = Ours(container, [operands])
    worst = difference(ours.result(operands, KINDS[row.kind][2]), row, operands)
    ours.close()
    return {"difference": worst, "right": worst <= TOLERANCE[row.kind]}


def run_rows(
    rows: list[Row], pool: ProcessPoolExecutor, does: Callable[[Row, Container], dict[str, Any]]
) -> dict[str, Any]:
    """All rows, each told as it is done."""
    results: dict[str, Any] = {}
    for row, container, seconds in pool.map(compiled, rows):
        try:
            if isinstance(container, str):
                raise RuntimeError(container)
            found = {**does(row, container), "compile_s": round(seconds, 2)}
        except Exception as error:  # one that fails must not hide the others
            found = {"right": False, "error": f"{type(error).__name__}: {error}"[:500]}
        results[row.name] = found
        print(row.name, json.dumps(found), flush=True)
    return results


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--shapes", type=int, default=0)
    args = parser.parse_args()
    rows = [r for r in ROWS if args.only in r.name]
    with ProcessPoolExecutor(WORKERS) as pool:
        results = run_rows(rows, pool, measure)
        shapes = run_rows(random_rows(args.shapes), pool, check) if args.shapes else {}
    if shapes:
        wrong = [name for name, found in shapes.items() if not found["right"]]
        print(f"{len(shapes) - len(wrong)} of {len(shapes)} random shapes right; wrong: {wrong}")
    for name, found in results.items():
        if "error" not in found:
            print(
                f"{name:26} {found['ours_rotated']:.4f} ms ({found['tflops']:.0f} TFLOP/s), torch "
                f"{found['torch_rotated']:.4f}, ratio {found['ratio']:.3f}; single "
                f"{found['ours_single']:.4f} / {found['torch_single']:.4f}"
            )
    if args.json:
        args.json.write_text(json.dumps({"rows": results, "shapes": shapes}, indent=1))


if __name__ == "__main__":
    main()
