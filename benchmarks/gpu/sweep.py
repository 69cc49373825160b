"""Random kernels on a GPU, drawn anew for each seed, beside torch.

    python benchmarks/gpu/sweep.py --seed 7 [--kinds product,conv] [--count 20] [--json FILE]
    python benchmarks/gpu/sweep.py --seed 7 --only conv:3,conv:17        # some cases of it again
    python benchmarks/gpu/sweep.py --seed 7 8 9 --json benchmarks/results/sweep-h200.json

What is drawn is in `sweep_cases.py`. Each case is a graph of captured launches over sets of inputs
that together exceed the L2 cache; replays of ours and torch's take turns, and the figure is the
median between events. Torch's is its best: both memory formats of images, all of its attentions.
Errors are those against f64, ours beside torch's.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from products import Launch, Ours, captured, medians
from sweep_cases import COUNTS, DTYPES, GpuCase, Tensors, draw, ranges
from torch.nn.attention import SDPBackend, sdpa_kernel

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from results_file import write_results
from sweep_tables import GPU_BEHIND, GPU_LEAST, MAX_ERROR_RATIO, is_far

from tilewright.driver.compile import compile_container
from tilewright.driver.options import make_options
from tilewright.runtime.container import Container

ROTATED_BYTES = 200 << 20
MAX_SETS = 32
WORKERS = 14
ATTENTIONS = (
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.CUDNN_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
)

OURS, CHANNELS_LAST = "ours", "ours channels-last"

Key = tuple[str, int, int]


def compiled(key: Key) -> tuple[Key, dict[str, Container] | str, float]:
    """The models of a case for the GPU, or what went wrong, and the seconds that took."""
    start = time.perf_counter()
    case = draw(*key)
    models = {OURS: case.case, CHANNELS_LAST: case.channels_last}
    found: dict[str, Container] | str = {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        options = make_options(target="cuda", cache=False)
        try:
            for name, model in models.items():
                if model is not None:
                    onnx.save(model.model(), str(path))
                    found[name] = compile_container(str(path), options)
        except Exception as error:  # told where the others are
            found = f"{type(error).__name__}: {error}"[:500]
    return key, found, time.perf_counter() - start


def random_inputs(case: GpuCase) -> Tensors:
    """Random inputs on the GPU."""
    dtype = DTYPES[case.dtype][1]
    about = case.case
    return [
        torch.randint(about.largest_index[name], shape, device="cuda")
        if name in about.largest_index
        else torch.randn(*shape, device="cuda", dtype=torch.float32).to(dtype)
        for name, shape in about.inputs.items()
    ]


def weights_of(case: GpuCase) -> Tensors:
    """The weights as torch has them."""
    floats = [w for w in case.case.weights.values() if w.dtype == case.case.dtype]
    dtype = DTYPES[case.dtype][1]
    return [torch.from_numpy(w.astype("f4")).cuda().to(dtype) for w in floats]


def theirs(case: GpuCase, sets: list[Tensors], weights: Tensors) -> dict[str, Launch]:
    """What torch can do: a name for each way."""
    plain: Launch = lambda number: case.torch(sets[number], weights)  # noqa: E731
    if case.channels_last is not None:
        last = [[t.to(memory_format=torch.channels_last) for t in given] for given in sets]
        kernel = [weights[0].to(memory_format=torch.channels_last), *weights[1:]]
        return {"contiguous": plain, "channels-last": lambda n: case.torch(last[n], kernel)}
    if case.case.kind != "attention":
        return {"torch": plain}

    def attend(backend: SDPBackend, number: int) -> torch.Tensor:
        with sdpa_kernel(backend):
            return case.torch(sets[number], weights)

    return {backend.name.lower(): partial(attend, backend) for backend in ATTENTIONS}


def difference(found: torch.Tensor, case: GpuCase, given: Tensors, weights: Tensors) -> float:
    """How far a result is from that in f64, relative to its norm."""
    doubles = [t.double() if t.is_floating_point() else t for t in case.part(given)]
    right = case.torch([t.clone() for t in doubles], [w.double() for w in weights])
    part = case.part([found])[0].double()
    return float(torch.linalg.norm(part - right) / torch.linalg.norm(right))


def in_layout(name: str, given: Tensors) -> tuple[torch.Tensor, ...]:
    """Inputs as one of our models takes them."""
    if name != CHANNELS_LAST:
        return tuple(given)
    return tuple(t.permute(0, 2, 3, 1).contiguous() for t in given)


def measure(case: GpuCase, containers: dict[str, Container]) -> dict[str, Any]:
    """Check and time one case beside torch."""
    count = min(MAX_SETS, max(1, -(-ROTATED_BYTES // int(case.case.bytes))))
    sets = [random_inputs(case) for _ in range(count)]
    weights = weights_of(case)
    theirs_found = case.torch(sets[0], weights)
    errors: list[float] = []
    launches: dict[str, Launch] = {}
    ours = []
    for name, container in containers.items():
        own = Ours(container, [in_layout(name, given) for given in sets])
        found = own.result(in_layout(name, sets[0]), theirs_found.dtype)
        if name == CHANNELS_LAST:
            batch, channels, *space = theirs_found.shape
            found = found.view(batch, *space, channels).permute(0, 3, 1, 2)
        found = found.reshape(theirs_found.shape)
        errors.append(difference(found, case, sets[0], weights))
        launches[name] = own.launch
        ours.append(own)
    result: dict[str, Any] = {
        "error": float(np.max(errors)),  # which a NaN is too
        "torch_error": difference(theirs_found, case, sets[0], weights),
        "rules": {n: _rules(c) for n, c in containers.items()},
        "ms": _timed({**launches, **theirs(case, sets, weights)}, count),
    }
    for own in ours:
        own.close()
    mine = [ms for name, ms in result["ms"].items() if name in containers]
    others = [ms for name, ms in result["ms"].items() if name not in containers]
    result["ratio"] = min(others) / min(mine)
    result["tflops"] = case.case.work / min(mine) / 1e9
    result["gbs"] = case.case.bytes / min(mine) / 1e6
    return result


def _rules(container: Container) -> list[str]:
    return [kernel["rule"] for kernel in container.manifest["schedules"].values()]


def _timed(launches: dict[str, Launch], count: int) -> dict[str, float]:
    """Milliseconds of each; a way of torch's that does not take such operands is left out."""
    graphs: dict[str, torch.cuda.CUDAGraph] = {}
    for name, launch in launches.items():
        try:
            graphs[name] = captured(launch, count)
        except RuntimeError:
            if name.startswith(OURS):
                raise
            torch.cuda.synchronize()
    return dict(zip(graphs, medians(list(graphs.values()), count), strict=True))


def run_cases(keys: list[Key]) -> list[dict[str, Any]]:
    """All cases, each told as it is done."""
    results: list[dict[str, Any]] = []
    with ProcessPoolExecutor(WORKERS) as pool:
        for key, containers, seconds in pool.map(compiled, keys):
            case = draw(*key)
            try:
                if isinstance(containers, str):
                    raise RuntimeError(containers)
                found = {**measure(case, containers), "compile_s": round(seconds, 2)}
            except Exception as error:  # one that fails must not hide the others
                found = {"failure": f"{type(error).__name__}: {error}"[:500]}
            found = {"seed": key[1], "kind": key[0], "case": case.name, **found}
            results.append(found)
            print(f"{key[0]}:{key[2]}", line(found), flush=True)
    return results


def line(found: dict[str, Any]) -> str:
    """One case on one line."""
    if "failure" in found:
        return f"{found['case']}: {found['failure']}"
    times = ", ".join(f"{name} {ms * 1e3:.1f}" for name, ms in found["ms"].items())
    return (
        f"{found['case']}: {found['ratio']:.2f} ({times} us; {found['tflops']:.0f} TFLOP/s, "
        f"{found['gbs']:.0f} GB/s; error {found['error']:.1e}, torch {found['torch_error']:.1e}; "
        f"{'; '.join(' '.join(rules) for rules in found['rules'].values()).replace('gpu.', '')})"
    )


def summary(kind: str, cases: list[GpuCase], results: list[dict[str, Any]]) -> str:
    """A kind in a few lines."""
    timed = [r for r in results if "ratio" in r]
    ratios = sorted(r["ratio"] for r in timed)
    lowest = ", ".join(f"{r:.2f}" for r in ratios[:5])
    return (
        f"{kind}: {len(results)} cases, geomean {statistics.geometric_mean(ratios):.3f}, "
        f"{sum(r < GPU_LEAST for r in ratios)} below {GPU_LEAST}, "
        f"{sum(r < GPU_BEHIND for r in ratios)} below {GPU_BEHIND} (lowest {lowest}), "
        f"{len(results) - len(timed)} failed, {sum(map(is_far, timed))} with more than "
        f"{MAX_ERROR_RATIO} times torch's error\n  drawn: {ranges(cases)}"
    )


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, nargs="+", required=True)
    parser.add_argument("--kinds", default=",".join(COUNTS))
    parser.add_argument("--count", type=int, help="cases of each kind")
    parser.add_argument("--only", default="")
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = False
    kinds, results = args.kinds.split(","), []
    only = set(filter(None, args.only.split(",")))
    for seed in args.seed:
        keys = [(k, seed, n) for k in kinds for n in range(args.count or COUNTS[k])]
        keys = [k for k in keys if not only or f"{k[0]}:{k[2]}" in only]
        found = run_cases(keys)
        for kind in kinds:
            cases = [draw(*k) for k in keys if k[0] == kind]
            if cases:
                print(f"seed {seed}", summary(kind, cases, [r for r in found if r["kind"] == kind]))
        results += found
    if args.json:
        write_results(args.json, torch.cuda.get_device_name(), results=results)


if __name__ == "__main__":
    main()
