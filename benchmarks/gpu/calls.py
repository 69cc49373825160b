"""What a call of a small model on a GPU takes the host: ours, torch's and what its compiler makes.

    python benchmarks/gpu/calls.py [--json benchmarks/results/calls-h200.json]

Calls are queued without waiting, a hundred in a row, twenty such rows. With `held`,
the last 64 results are kept, so that each call writes to other memory than the one before.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from results_file import write_results

import tilewright as tw
from tilewright.compat.torch_backend import tilewright as backend

ROWS, CALLS, HELD = 20, 100, 64
WIDTH, BATCH = 64, 16


def modules() -> dict[str, nn.Module]:
    """Models of one kernel and of several."""
    wide = 16 * WIDTH
    deep = [nn.Linear(WIDTH, wide), nn.GELU(), nn.Linear(wide, wide), nn.GELU()]
    return {
        "relu": nn.ReLU(),
        "linear, relu": nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()),
        "three wide linear": nn.Sequential(*deep, nn.Linear(wide, WIDTH)),
    }


def microseconds(call: Callable[[], Any]) -> dict[str, float]:
    """The host's time for a call that does not wait: the least and the median of rows."""
    for _ in range(CALLS):
        call()
    rows = []
    for _ in range(ROWS):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        rows.append((time.perf_counter() - start) / CALLS * 1e6)
    return {"least": round(min(rows), 2), "median": round(median(rows), 2)}


def measure(module: nn.Module) -> dict[str, Any]:
    """Microseconds of calls by who makes them, and our kernels."""
    x = torch.randn(BATCH, WIDTH, device="cuda")
    held: list[Any] = []
    found: dict[str, dict[str, float]] = {}
    with tw.compile(module.cpu(), inputs=(x.cpu(),), target="cuda") as model:

        def keep() -> None:
            held.append(model(x))
            del held[:-HELD]

        kernels = len(model.manifest["schedules"])
        found["model(x)"] = microseconds(lambda: model(x))
        found["model(x), held"] = microseconds(keep)
    module.cuda()
    found["torch"] = microseconds(lambda: module(x))
    for name, made in (("tilewright", backend), ("inductor", "inductor")):
        torch._dynamo.reset()
        fast = torch.compile(module, backend=made)
        found[f"torch.compile, {name}"] = microseconds(lambda call=fast: call(x))
    return {"kernels": kernels, "us": found}


def main() -> None:
    """Measure, print, write JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.manual_seed(0)
    results = []
    with torch.no_grad():
        for name, module in modules().items():
            results.append({"model": name, **measure(module.eval())})
            print(json.dumps(results[-1]), flush=True)
    if args.json:
        write_results(args.json, torch.cuda.get_device_name(), results=results)


if __name__ == "__main__":
    main()
