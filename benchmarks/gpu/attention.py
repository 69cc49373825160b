"""Attention in bf16 and f16 on a GPU, beside torch's scaled_dot_product_attention.

    python benchmarks/gpu/attention.py [--json results.json] [--only causal] [--shapes 20]
        [--tiles 64x64,128x64]

Every row is checked against attention in f64. Times are those of `products.py`: of one attention
among several on operands larger than the L2 together, in one captured graph, and of the replay of a
graph with one of them. With `--tiles`, each row is computed in these tiles too; with `--shapes`, as
many random shapes are checked besides.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from products import KINDS, MAX_SETS, ROTATED_BYTES, WORKERS, Ours, median_time
from torch.nn.functional import scaled_dot_product_attention

from tilewright.arith.expr import const
from tilewright.core.dtypes import DType
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.nodes import Func
from tilewright.ir.types import tensor
from tilewright.ops.attention.attention import MaskAttrs
from tilewright.ops.attrs import make_attrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.runtime.container import Container
from tilewright.schedule.builtin.gpu.select_rule import schedule_for_gpu
from tilewright.schedule.builtin.rules import ScheduledFunc
from tilewright.target.gpu import GpuTarget

TOLERANCE = {"bf16": 6e-3, "f16": 1e-3}
SEED = 7

Operands = tuple[torch.Tensor, ...]


@dataclass(frozen=True)
class Row:
    """One attention; `groups` are the heads of queries that share those of keys."""

    batch: int
    heads: int
    queries: int
    keys: int
    size: int
    kind: str = "bf16"
    causal: bool = False
    masked: bool = False
    groups: int = 1
    tile: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        """What it is called in the table."""
        words = [f"b{self.batch} h{self.heads} {self.queries}x{self.keys} d{self.size}", self.kind]
        words += ["causal"] if self.causal else []
        words += ["masked"] if self.masked else []
        words += [f"groups of {self.groups}"] if self.groups > 1 else []
        words += ["x".join(map(str, self.tile))] if self.tile else []
        return " ".join(words)

    @property
    def shapes(self) -> list[tuple[int, ...]]:
        """Queries, keys, values and the mask, where there is one."""
        few = self.heads // self.groups
        kv = (self.batch, few, self.keys, self.size)
        mask = [(self.batch, 1, self.queries, self.keys)] if self.masked else []
        return [(self.batch, self.heads, self.queries, self.size), kv, kv, *mask]

    @property
    def flops(self) -> float:
        """Of both products, where nothing is hidden; under a causal mask half of them."""
        all_of_it = 4 * self.batch * self.heads * self.queries * self.keys * self.size
        return all_of_it / 2 if self.causal else all_of_it


ROWS = (
    Row(4, 16, 128, 128, 64),
    Row(4, 16, 1024, 1024, 64),
    Row(4, 16, 4096, 4096, 64),
    Row(4, 16, 4096, 4096, 64, causal=True),
    Row(4, 16, 1024, 1024, 64, masked=True),
    Row(4, 16, 1024, 1024, 128, kind="f16"),
    Row(4, 16, 4096, 4096, 128),
    Row(4, 16, 4096, 4096, 128, causal=True),
    Row(1, 12, 128, 128, 64, kind="f16"),
    Row(32, 12, 128, 128, 64, kind="f16"),
    Row(1, 32, 1000, 1000, 128, causal=True, groups=4),
    *(Row(b, 32, 1, n, 128, groups=4) for b in (1, 8) for n in (4096, 16384)),
)


def graph_of(row: Row) -> Graph:
    """The attention as a model of its operands."""
    dtype = KINDS[row.kind][0]
    b = GraphBuilder("attention")
    given = [b.input(n, tensor(dtype, *s)) for n, s in zip("qkvm", row.shapes, strict=False)]
    q, k, v = given[:3]
    if row.groups > 1:
        k, v = (_repeated(b, x, row) for x in (k, v))
    scale = 1 / row.size**0.5
    turned = b.add("transpose", k, attrs=make_attrs("transpose", {"perm": (0, 1, 3, 2)}))
    scores = b.add("mul", b.add("matmul", q, turned), _number(b, scale, dtype))
    if row.masked:
        scores = b.add("add", scores, given[3])
    if row.causal:
        scores = b.add("mask_scores", scores, attrs=MaskAttrs(const(0), window_right=0))
    weights = b.add("softmax", scores, attrs=make_attrs("softmax", {"axis": -1}))
    return b.graph(b.add("matmul", weights, v))


def _number(b: GraphBuilder, value: float, dtype: DType) -> str:
    return b.constant(np.asarray(value, dtype.numpy))


def _repeated(b: GraphBuilder, x: str, row: Row) -> str:
    """Heads repeated as exporters do it."""
    batch, few, keys, size = row.shapes[1]
    one = b.add("reshape", x, attrs=make_attrs("reshape", {"shape": (batch, few, 1, keys, size)}))
    more = (batch, few, row.groups, keys, size)
    every = b.add("expand", one, attrs=make_attrs("expand", {"shape": more}))
    whole = (batch, row.heads, keys, size)
    return b.add("reshape", every, attrs=make_attrs("reshape", {"shape": whole}))


def in_tile(
    tile: tuple[int, ...], func: Func, constants: frozenset[str], target: GpuTarget
) -> ScheduledFunc:
    """Attention in a tile of rows and keys, and with the keys in parts where that is given."""

    def decide(name: str, default: Any, options: Sequence[Any]) -> Any:
        return (*tile, 1)[:3] if name == "attention.tile" else default

    return schedule_for_gpu(func, constants, target, decide)


def compiled(row: Row) -> tuple[Row, Container | str, float]:
    """The attention for the GPU, or what went wrong, and the seconds that took."""
    start = time.perf_counter()
    options = make_options(target="cuda", cache=False)
    if row.tile:
        options = replace(options, schedules=partial(in_tile, row.tile))
    try:
        found: Container | str = compile_container(graph_of(row), options)
    except Exception as error:  # told where the others are
        found = f"{type(error).__name__}: {error}"[:500]
    return row, found, time.perf_counter() - start


def random_set(row: Row) -> Operands:
    """Random operands on the GPU; the mask hides some keys, and moves others."""
    kind = KINDS[row.kind][1]
    found = [torch.randn(*s, device="cuda").to(kind) for s in row.shapes]
    if row.masked:
        hidden = torch.rand_like(found[3], dtype=torch.float32) < 0.2
        found[3] = found[3].masked_fill(hidden, float("-inf"))
    return tuple(found)


def theirs(row: Row, operands: Sequence[torch.Tensor]) -> torch.Tensor:
    """What torch computes."""
    mask = operands[3] if row.masked else None
    return scaled_dot_product_attention(
        *operands[:3], attn_mask=mask, is_causal=row.causal, enable_gqa=row.groups > 1
    )


def difference(found: torch.Tensor, row: Row, operands: Operands) -> float:
    """How far a result is from that in f64, relative to its norm; a batch at a time."""
    wrong = whole = 0.0
    for n in range(row.batch):
        q, k, v, *mask = (t[n : n + 1].double() for t in operands)
        k, v = (t.repeat_interleave(row.groups, 1) for t in (k, v))
        for h in range(row.heads):
            scores = q[:, h] @ k[:, h].transpose(-1, -2) / row.size**0.5
            scores = scores + mask[0][:, 0] if mask else scores
            if row.causal:
                later = torch.ones_like(scores, dtype=torch.bool).triu(1)
                scores = scores.masked_fill(later, float("-inf"))
            right = scores.softmax(-1) @ v[:, h]
            wrong += float(((found[n, h].double() - right[0]) ** 2).sum())
            whole += float((right**2).sum())
    return (wrong / whole) ** 0.5


def measure(row: Row, container: Container) -> dict[str, Any]:
    """Check and time one row beside torch."""
    one = 2 * sum(int(np.prod(s)) for s in (*row.shapes, row.shapes[0]))
    count = min(MAX_SETS, max(1, -(-ROTATED_BYTES // one)))
    sets = [random_set(row) for _ in range(count)]
    ours = Ours(container, sets)
    kind = KINDS[row.kind][1]
    found = difference(ours.result(sets[0], kind), row, sets[0])
    result: dict[str, Any] = {"difference": found, "right": found <= TOLERANCE[row.kind]}
    result["torch_difference"] = difference(theirs(row, sets[0]), row, sets[0])
    kernels = container.manifest["schedules"].values()
    result["rules"] = [k["rule"] for k in kernels]
    runs: dict[str, Callable[[int], object]] = {
        "ours": ours.launch,
        "torch": lambda number: theirs(row, sets[number]),
    }
    for word, launch in runs.items():
        result[f"{word}_rotated"] = median_time(launch, count)
        result[f"{word}_single"] = median_time(launch, 1)
    result["tflops"] = row.flops / result["ours_rotated"] / 1e9
    result["ratio"] = result["torch_rotated"] / result["ours_rotated"]
    ours.close()
    return result


def random_rows(count: int) -> list[Row]:
    """Attention of random sizes and masks; some of few queries and many keys.

    Batches are up to 31, so that there are enough rows for tiles of every size, and some keys are
    whole tiles.
    """
    rng = np.random.default_rng(SEED)
    found = []
    for _ in range(count):
        heads, groups = (int(rng.integers(1, 4)) for _ in range(2))
        queries, keys = (int(2 ** rng.uniform(3, 9)) for _ in range(2))
        if rng.integers(4) == 0:
            queries, keys = 1 + queries % 8, 8 * keys
        keys = -(-keys // 128) * 128 if rng.integers(3) == 0 else keys
        size = (64, 128, 8 * int(rng.integers(2, 17)))[int(rng.integers(3))]
        kind, hides = ("bf16", "f16")[int(rng.integers(2))], int(rng.integers(3))
        causal = hides == 1
        batch = int(2 ** rng.uniform(0, 5))
        row = Row(batch, heads * groups, queries, keys, size, kind, causal, hides == 2, groups)
        found.append(row)
    return found


def check(row: Row, container: Container) -> dict[str, Any]:
    """Check one row."""
    operands = random_set(row)
    ours = Ours(container, [operands])
    worst = difference(ours.result(operands, KINDS[row.kind][1]), row, operands)
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
    parser.add_argument("--tiles", default="")
    args = parser.parse_args()
    tiles = [tuple(map(int, t.split("x"))) for t in args.tiles.split(",") if t]
    rows = [r for r in ROWS if args.only in r.name]
    rows = [replace(r, tile=t) for r in rows for t in ((), *tiles) if not t or r.groups == 1]
    with ProcessPoolExecutor(WORKERS) as pool:
        results = run_rows(rows, pool, measure)
        shapes = run_rows(random_rows(args.shapes), pool, check) if args.shapes else {}
    if shapes:
        wrong = [name for name, found in shapes.items() if not found["right"]]
        print(f"{len(shapes) - len(wrong)} of {len(shapes)} random shapes right; wrong: {wrong}")
    for name, found in results.items():
        if "error" not in found:
            print(
                f"{name:44} {found['ours_rotated']:.4f} ms ({found['tflops']:.0f} TFLOP/s), torch "
                f"{found['torch_rotated']:.4f}, ratio {found['ratio']:.3f}; single "
                f"{found['ours_single']:.4f} / {found['torch_single']:.4f}"
            )
    if args.json:
        args.json.write_text(json.dumps({"rows": results, "shapes": shapes}, indent=1))


if __name__ == "__main__":
    main()
