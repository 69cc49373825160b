"""Whether anything is lost on a GPU: after thousands of runs, and of models made and closed.

    python benchmarks/gpu/leaks.py [--runs 10000] [--cycles 200] [--json leaks.json]

A small model is called with arrays of the host and with tensors of torch's, the results held and
dropped; then it is loaded, run and closed again and again. What is compared is the free memory of
the GPU and that of the process, after a tenth of the work and at its end. Then errors: a model that
needs more memory than there is must say so, and leave everything as it was.
"""

from __future__ import annotations

import argparse
import gc
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.dtypes import F32
from tilewright.core.errors import ExecutionError
from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.runtime.container import Container
from tilewright.runtime.cuda.driver import open_driver
from tilewright.runtime.cuda.executable import CudaExecutable

# What the process may grow by: Python's own memory comes and goes in such steps.
HOST_SLACK = 4 << 20


def small_model() -> Graph:
    """Two products side by side and their sum, so that the graph has branches."""
    b = GraphBuilder("leaks")
    x = b.input("x", tensor(F32, 64, 256))
    w, v = (b.input(name, tensor(F32, 256, 512)) for name in "wv")
    return b.graph(b.add("add", b.add("matmul", x, w), b.add("matmul", x, v)))


def large_model() -> Graph:
    """A result of a terabyte."""
    b = GraphBuilder("large")
    x, y = (b.input(*row) for row in (("x", tensor(F32, 1 << 19, 1)), ("y", tensor(F32, 1 << 19))))
    return b.graph(b.add("exp", b.add("add", x, y)))


def held() -> tuple[int, int]:
    """Bytes in use on the GPU, and of the process."""
    gc.collect()
    free, total = open_driver().memory()
    resident = int(Path("/proc/self/statm").read_text().split()[1])
    return total - free, resident * 4096


def growth(work: Callable[[], Any], times: int) -> dict[str, Any]:
    """By how much memory in use grows from a tenth of the work to its end."""
    for _ in range(times // 10):
        work()
    before = held()
    for _ in range(times - times // 10):
        work()
    gpu, host = (b - a for a, b in zip(before, held(), strict=True))
    return {"times": times, "gpu": gpu, "host": host, "right": gpu <= 0 and host <= HOST_SLACK}


def runs(container: Container, arrays: list[np.ndarray], times: int) -> dict[str, Any]:
    """Calls with arrays of the host and with tensors on the GPU."""
    import torch

    tensors = [torch.from_numpy(a).cuda() for a in arrays]
    kept: list[Any] = []

    def there() -> None:
        kept.append(model(*tensors))
        del kept[:-3]

    with CudaExecutable(container) as model:
        return {"host": growth(lambda: model(*arrays), times), "gpu": growth(there, times)}


def cycles(container: Container, arrays: list[np.ndarray], times: int) -> dict[str, Any]:
    """Models made, run once and closed."""

    def cycle() -> None:
        with CudaExecutable(container) as model:
            model(*arrays)

    return growth(cycle, times)


def too_large() -> dict[str, Any]:
    """A model for which there is no memory: the error, and what it leaves behind."""
    container = compile_container(large_model(), make_options(target="cuda", cache=False))
    arrays = [np.zeros((1 << 19, 1), np.float32), np.zeros(1 << 19, np.float32)]
    before = held()[0]
    said = ""
    with CudaExecutable(container) as model:
        try:
            model(*arrays)
        except ExecutionError as error:
            said = str(error)
    return {"said": said, "right": "cuda.memory" in said and held()[0] <= before}


def main() -> None:
    """Measure, print, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10000)
    parser.add_argument("--cycles", type=int, default=200)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    rng = np.random.default_rng(3)
    container = compile_container(small_model(), make_options(target="cuda", cache=False))
    shapes = ((64, 256), (256, 512), (256, 512))
    arrays = [rng.random(shape, np.float32) for shape in shapes]
    results = runs(container, arrays, args.runs)
    results["cycles"] = cycles(container, arrays, args.cycles)
    results["too large"] = too_large()
    for name, row in results.items():
        print(name, json.dumps(row), flush=True)
    if args.json:
        args.json.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
