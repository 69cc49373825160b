"""Every kind of kernel once or twice on a GPU, for NVIDIA's compute-sanitizer to watch.

    compute-sanitizer --tool racecheck python benchmarks/gpu/sanitize.py [--shapes 2]

Kernels are compiled by other processes, so that only what runs on the GPU is slowed down.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check import WORKERS, Job, random_jobs

from tilewright.core.dtypes import BF16, F16, F32
from tilewright.driver.compile import compile_container
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.build import GraphBuilder
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.executable import CudaExecutable

# Products, most on tensor cores: whole tiles, edges, few rows, much depth; and their types.
PRODUCTS = ((256, 256, 256), (200, 136, 72), (67, 45, 33), (1, 512, 512), (64, 64, 2048))
KINDS = {"bf16": BF16, "fp16": F16, "tf32": F32, "f32": F32}


def product(job: Job) -> Graph:
    """A product of two values."""
    (m, n, k), dtype = job[1], KINDS[job[2]]
    b = GraphBuilder("product")
    x, w = (b.input(*port) for port in (("x", tensor(dtype, m, k)), ("w", tensor(dtype, k, n))))
    return b.graph(b.add("matmul", x, w))


def compiled(job: Job) -> tuple[Job, Container | str]:
    """A kernel, or what went wrong."""
    from tests.differential.kernel_graphs import KERNELS

    name, sizes, precision = job
    given = {} if precision == "f32" else {"precision": precision}
    try:
        if name == "product":
            given = given if precision == "tf32" else {}
            return job, compile_container(product(job), target="cuda", cache=False, **given)
        return job, compile_container(KERNELS[name](*sizes), target="cuda", cache=False, **given)
    except Exception as error:  # told where the others are
        return job, f"{type(error).__name__}: {error}"


def main() -> None:
    """Run all; the sanitizer tells what it finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shapes", type=int, default=1)
    shapes = parser.parse_args().shapes
    jobs: list[Job] = [("product", sizes, kind) for sizes in PRODUCTS for kind in KINDS]
    jobs += (job for kind in ("f32", "fp16") for job in random_jobs(shapes, kind))
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
