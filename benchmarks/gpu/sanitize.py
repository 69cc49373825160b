"""Every kind of kernel once or twice on a GPU, for NVIDIA's compute-sanitizer to watch.

    compute-sanitizer --tool racecheck python benchmarks/gpu/sanitize.py [--shapes 2]

Kernels are compiled by other processes, so that only what runs on the GPU is slowed down.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check import WORKERS, random_jobs
from integers import Case, model_of

from tilewright.core.dtypes import BF16, F16, F32
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.executable import CudaExecutable

# Products, most on tensor cores: whole tiles, edges, few rows, much depth, blocks that stay; one of
# 16 bits as stream-K; and their types.
PRODUCTS = (
    *((256, 256, 256), (200, 136, 72), (67, 45, 33), (1, 512, 512), (64, 64, 2048)),
    (2048, 2304, 128),
)
SHARED = (896, 1280, 4096)
INTEGERS = (
    Case(256, 256, 256, "u8", "i8"),
    Case(200, 136, 80, "i8", "i8", "one", "each"),
    Case(67, 45, 33, "u8", "u8", "each", "one", constant=False),
    Case(1, 512, 512, "i8", "u8", "one"),
    Case(2048, 2304, 128, "u8", "i8", "one"),
)
# Of attention: batch, heads, queries, keys, their size, the type, then causal, masked, and how many
# heads share their keys.
ATTENTIONS = (
    (1, 2, 128, 128, 64, "f16"),
    (2, 2, 200, 333, 64, "bf16", True),
    (1, 2, 256, 256, 128, "bf16"),
    (1, 4, 129, 257, 96, "f16", False, True),
    (1, 4, 100, 100, 128, "bf16", True, False, 4),
    (1, 8, 1, 1000, 128, "bf16", False, False, 4),
)
KINDS = {"bf16": BF16, "fp16": F16, "tf32": F32, "f32": F32}
TYPED = ("product", "integers", "attention")

Work = tuple[str, tuple[Any, ...], str]
"""The kind of a kernel, its sizes, and the precision."""


def product(sizes: tuple[int, int, int], kind: str) -> Graph:
    """A product of two values."""
    (m, n, k), dtype = sizes, KINDS[kind]
    b = GraphBuilder("product")
    x, w = (b.input(*port) for port in (("x", tensor(dtype, m, k)), ("w", tensor(dtype, k, n))))
    return b.graph(b.add("matmul", x, w))


def source(name: str, sizes: tuple[Any, ...], precision: str) -> Graph | onnx.ModelProto:
    """What is compiled. The graphs of attention come with torch, which only compiling pays for."""
    if name == "product":
        return product(sizes, precision)
    if name == "integers":
        return model_of(Case(*sizes))
    if name == "attention":
        from attention import Row, graph_of

        return graph_of(Row(*sizes))
    from tests.differential.kernel_graphs import KERNELS

    return KERNELS[name](*sizes)


def compiled(job: Work) -> tuple[Work, Container | str]:
    """A kernel, or what went wrong."""
    name, _, precision = job
    typed = name in TYPED and precision != "tf32"  # values have their type already
    given = {} if typed or precision == "f32" else {"precision": precision}
    try:
        return job, compile_container(
            source(*job), make_options(target="cuda", cache=False, **given)
        )
    except Exception as error:  # told where the others are
        return job, f"{type(error).__name__}: {error}"


def all_jobs(shapes: int) -> list[Work]:
    """Products of every type, attention, and the other kernels at so many shapes."""
    jobs: list[Work] = [("product", sizes, kind) for sizes in PRODUCTS for kind in KINDS]
    jobs += (("product", SHARED, kind) for kind in ("bf16", "fp16"))
    jobs += (("integers", astuple(case), "i8") for case in INTEGERS)
    jobs += (("attention", case, "16 bits") for case in ATTENTIONS)
    return jobs + [(*job, kind) for kind in ("f32", "fp16") for job in random_jobs(shapes)]


def main() -> None:
    """Run all; the sanitizer tells what it finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, default=1)
    shapes = parser.parse_args().shapes
    jobs = all_jobs(shapes)
    rng = np.random.default_rng(1)
    failed = 0
    with ProcessPoolExecutor(WORKERS) as pool:
        for job, container in pool.map(compiled, jobs):
            try:
                if isinstance(container, str):
                    raise RuntimeError(container)
                with CudaExecutable(container) as model:
                    ports = model.inputs
                    model(*(rng.integers(0, 3, p.shape).astype(p.dtype.numpy) for p in ports))
            except Exception as error:  # one that fails must not hide the others
                failed += 1
                print(f"FAILED {job}: {error}"[:500], flush=True)
    print(f"KERNELS {len(jobs)} FAILED {failed}", flush=True)


if __name__ == "__main__":
    main()
