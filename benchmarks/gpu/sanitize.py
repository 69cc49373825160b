"""Every kind of kernel on a GPU once, for NVIDIA's compute-sanitizer to watch.

    compute-sanitizer --tool racecheck python benchmarks/gpu/sanitize.py [--part 1/4] [--shapes 2]

The kinds are in `sanitize_kinds.py`. `--part` takes every fourth of them: several processes share
the work. With `--shapes`, kernels of so many random shapes follow. Kernels are compiled by other
processes, so that only what runs on the GPU is slowed down.
"""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check import WORKERS, Job, random_jobs
from sanitize_kinds import Watched, all_watched

from tilewright.driver.compile import compile_container
from tilewright.driver.options import CompileOptions, make_options
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.executable import CudaExecutable
from tilewright.target.gpu import GpuTarget

# The value of every symbolic size.
ANY_SIZE = 37
# How many of those that take longest are named.
NAMED = 5

Work = Watched | tuple[Job, str]
"""A kind of the table, or a kernel of a random shape and its precision."""


def name_of(work: Work) -> str:
    """What is told of it."""
    return work.name if isinstance(work, Watched) else f"{work[0]} {work[1]}"


def options_of(precision: str, sms: int = 0) -> CompileOptions:
    """For the GPU, or for one like it of so many SMs."""
    options = make_options(target="cuda", precision=precision)
    gpu = options.target
    if not sms or not isinstance(gpu, GpuTarget):
        return options
    return replace(
        options,
        target=replace(gpu, sm_count=sms, mma_rate=gpu.mma_rate * sms // gpu.sm_count),
    )


def compiled(work: Work) -> Container | str:
    """A kernel, or what went wrong."""
    from tests.differential.kernel_graphs import KERNELS
    from tests.kernels.generations import build

    try:
        if isinstance(work, Watched):
            options = options_of(work.kind.precision, work.sms)
            return compile_container(build(work.kind), options)
        (name, sizes), precision = work
        return compile_container(KERNELS[name](*sizes), options_of(precision))
    except Exception as error:  # told where the others are
        return f"{type(error).__name__}: {error}"


def all_work(part: tuple[int, int], shapes: int) -> list[Work]:
    """One of so many equal parts of the table, and of kernels at random shapes."""
    random = [(job, precision) for precision in ("f32", "fp16") for job in random_jobs(shapes)]
    number, parts = part
    return [*all_watched(), *random][number - 1 :: parts]


def run(container: Container | str, rng: np.random.Generator) -> None:
    """Run a kernel once on small numbers."""
    if isinstance(container, str):
        raise RuntimeError(container)
    with CudaExecutable(container) as model:
        shapes = [[n if isinstance(n, int) else ANY_SIZE for n in p.shape] for p in model.inputs]
        drawn = zip(model.inputs, shapes, strict=True)
        model(*(rng.integers(0, 3, shape).astype(p.dtype.numpy) for p, shape in drawn))


def main() -> None:
    """Run all; the sanitizer tells what it finds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", default="1/1")
    parser.add_argument("--shapes", type=int, default=0)
    given = parser.parse_args()
    number, parts = map(int, given.part.split("/"))
    work = all_work((number, parts), given.shapes)
    rng = np.random.default_rng(1)
    seconds: dict[str, float] = {}
    failed = 0
    with ProcessPoolExecutor(max(1, WORKERS // parts)) as pool:
        for one, container in zip(work, pool.map(compiled, work), strict=True):
            start = time.perf_counter()
            try:
                run(container, rng)
            except Exception as error:  # one that fails must not hide the others
                failed += 1
                print(f"FAILED {name_of(one)}: {error}"[:500], flush=True)
            seconds[name_of(one)] = time.perf_counter() - start
    print(f"took longest: {slowest(seconds)}")
    print(f"KERNELS {len(work)} FAILED {failed}", flush=True)


def slowest(seconds: dict[str, float]) -> str:
    """Those that took longest."""
    order = sorted(seconds, key=lambda name: -seconds[name])[:NAMED]
    return ", ".join(f"{name} {seconds[name]:.1f} s" for name in order)


if __name__ == "__main__":
    main()
