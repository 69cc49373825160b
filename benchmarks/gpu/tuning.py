"""Tune models on this machine's GPU for some minutes, and time them before and after, beside torch.

    python benchmarks/gpu/tuning.py --minutes 9 --out DIR [resnet50 llama] [--peers eager,autotune]

The minutes are for everything: half of each model's share is for tuning, the rest for compiling,
timing, and the peers. Each peer is a process of its own that is stopped at its limit. `autotune` is
`torch.compile` with `max-autotune`; `autotune_s` is what its first call took. All are replayed as
one captured graph, the inputs on the GPU already; figures are medians between two events.

With few minutes, one model a call gives each more of them. What is known is printed and written to
DIR/tuning.json at once, the records to DIR/MODEL.db: who runs this again goes on from there. Where
isl is not installed, or with `--unchecked`, traces are not checked for dependences; what candidates
compute is compared with the processor's results anyway.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1])]

# Of a model's share: for the tuner, and the most for each peer.
TUNING_SHARE, PEER_SHARE = 0.5, 0.35
# Seconds between two lines about a search.
QUIET = 10.0
RUNS, WARM = 50, 5

Figures = dict[str, Any]


class Report:
    """All figures so far, in a file that always has what is known."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "tuning.json"
        self.figures: dict[str, Figures] = {}
        if self.path.exists():
            self.figures = json.loads(self.path.read_text())

    def note(self, model: str, **figures: Any) -> None:
        """Add figures of a model, and print them."""
        self.figures.setdefault(model, {}).update(figures)
        fresh = self.path.with_suffix(".fresh")
        fresh.write_text(json.dumps(self.figures, indent=1, default=str))
        fresh.replace(self.path)
        for name, value in figures.items():
            shown = f"{value:.4f}" if isinstance(value, float) else value
            if name != "kernels":
                print(f"{model}: {name} {shown}", flush=True)


def guarded(report: Report, model: str, step: str, do: Callable[[], Any]) -> Any:
    """What a step gives; one that fails is noted, and the others go on."""
    try:
        return do()
    except Exception as error:
        last = traceback.format_exc().strip().splitlines()[-12:]
        report.note(model, **{f"{step}_failed": f"{type(error).__name__}: {error}"[:600]})
        print("\n".join(last), flush=True)
        return None


def median_latency(compiled: Any, arrays: list[Any]) -> float:
    """Milliseconds of a replayed run."""
    compiled.latency(*arrays, runs=WARM)
    return statistics.median(compiled.latency(*arrays, runs=RUNS))


class Shown:
    """Prints a line about a session now and then."""

    def __init__(self, model: str) -> None:
        self.model, self.last, self.doing = model, 0.0, ""

    def __call__(self, session: Any) -> None:
        """Print, unless the last line is new and was about the same."""
        now = time.monotonic()
        head = session.doing.partition(" ")[0]
        if now - self.last < QUIET and head == self.doing:
            return
        self.last, self.doing = now, head
        done = session.report.searches
        known = [s for s in done if s.trials]
        print(
            f"{self.model}: {session.budget.elapsed:.0f} s, {session.doing}; "
            f"{session.report.trials} trials of {len(known)} of {len(done)} kernels, "
            f"{sum(s.failures for s in done)} failed",
            flush=True,
        )


def tune(
    graph: Any, model: str, out: Path, seconds: float, report: Report, unchecked: bool = False
) -> None:
    """Tune a model for so many seconds."""
    from tilewright.driver.tuning.end_to_end import TuningModel
    from tilewright.driver.tuning.session import SearchSettings, TuningSession
    from tilewright.driver.tuning.validate import winner
    from tilewright.target.registry import resolve_target
    from tilewright.tune.records import Records

    checked = not unchecked and importlib.util.find_spec("islpy") is not None
    whole = TuningModel(graph, resolve_target("cuda"), {}, "fp16", {}, 0)
    settings = SearchSettings(budget=seconds, batch=16, checked=checked)
    start = time.monotonic()
    with Records(out / f"{model}.db") as records:
        session = TuningSession(whole, records, settings, Shown(model))
        report.note(model, tasks=len(session.report.searches), skipped=session.report.skipped)
        found = session.run()
        rows = []
        for search in sorted(found.searches, key=lambda s: -s.builtin * s.task.about.weight):
            won = winner(search)
            row = {
                "kernel": search.task.about.name,
                "rule": search.task.about.kind,
                "calls": search.task.about.weight,
                "trials": search.trials,
                "failed": search.failures,
                "builtin_us": search.builtin * 1e6,
                "best_us": search.best * 1e6,
                "gain": won[1] if won else None,
                "problem": search.problem,
            }
            rows.append(row)
            print("  ", " ".join(f"{k}={_short(v)}" for k, v in row.items()), flush=True)
        latency = found.latency
        together = None if latency is None else [latency.before, latency.after, latency.result]
        report.note(
            model,
            tuning_s=time.monotonic() - start,
            trials=found.trials,
            failures=sum(s.failures for s in found.searches),
            tuned_kernels=sum(row["gain"] is not None for row in rows),
            checked_by_isl=checked,
            before_after=together,
            kernels=rows,
        )


def _short(value: Any) -> Any:
    return f"{value:.4g}" if isinstance(value, float) else value


def ours(model: str, out: Path, seconds: float, report: Report, unchecked: bool = False) -> None:
    """Compile, tune, and time before and after."""
    import torch
    from tuning_models import MODELS

    import tilewright as tw
    from tilewright.frontends.torch.capture import import_torch

    module, inputs = MODELS[model]()
    graph = guarded(report, model, "import", lambda: import_torch(module, inputs))
    if graph is None:  # another torch than the front end knows
        graph = out / f"{model}.onnx"
        torch.onnx.export(module, inputs, str(graph), input_names=["x"], output_names=["y"])
    arrays = [x.numpy() for x in inputs]
    with torch.inference_mode():
        right = module.cuda()(*(x.cuda() for x in inputs)).float().cpu().numpy()
    module.cpu()
    torch.cuda.empty_cache()

    def timed(word: str, tuned: Path | None) -> None:
        start = time.monotonic()
        with tw.compile(
            graph, target="cuda", precision="fp16", tuned=tuned, cache=False
        ) as compiled:
            found = compiled(*arrays)
            found = found[0] if isinstance(found, tuple) else found
            seconds = time.monotonic() - start
            error = abs(found.astype("float32") - right).max() / abs(right).max()
            milliseconds = median_latency(compiled, arrays)
        report.note(
            model,
            **{f"{word}_ms": milliseconds, f"{word}_error": float(error), f"{word}_s": seconds},
        )

    guarded(report, model, "before", lambda: timed("before", None))
    guarded(report, model, "tuning", lambda: tune(graph, model, out, seconds, report, unchecked))
    if (out / f"{model}.db").exists():
        guarded(report, model, "after", lambda: timed("after", out / f"{model}.db"))
    known = report.figures[model]
    if "before_ms" in known and "after_ms" in known:
        report.note(model, gain=known["before_ms"] / known["after_ms"])


def peer(model: str, name: str) -> Figures:
    """The figures of torch, in the process that is asked for them."""
    import torch
    from tuning_models import MODELS

    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    module, inputs = MODELS[model]()
    module, given = module.cuda(), [x.cuda() for x in inputs]
    if name == "autotune" and model == "resnet50":
        module, given = (x.to(memory_format=torch.channels_last) for x in (module, given[0]))
        given = [given]
    with torch.inference_mode():
        start = time.monotonic()
        call = module
        if name == "autotune":
            call = torch.compile(module, mode="max-autotune-no-cudagraphs")
        call(*given)
        torch.cuda.synchronize()
        seconds = time.monotonic() - start
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            for _ in range(3):
                call(*given)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            call(*given)
        times = []
        for n in range(WARM + RUNS):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if n >= WARM:
                times.append(begin.elapsed_time(end))
    return {f"{name}_ms": statistics.median(times), f"{name}_s": seconds}


def ask_peer(model: str, name: str, out: Path, limit: float, report: Report) -> None:
    """Run a peer in a process of its own, which is stopped at its limit."""
    file = out / f"{model}-{name}.json"
    words = [sys.executable, "-u", __file__, "--peer", name, "--out", str(file), model]
    environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(out / "inductor")}
    start = time.monotonic()
    try:
        done = subprocess.run(
            words, timeout=limit, env=environment, capture_output=True, text=True, check=False
        )
    except subprocess.TimeoutExpired:
        report.note(model, **{f"{name}_failed": f"stopped after {limit:.0f} s"})
        return
    if done.returncode or not file.exists():
        report.note(model, **{f"{name}_failed": done.stderr[-600:]})
        return
    report.note(model, **json.loads(file.read_text()))
    report.note(model, **{f"{name}_process_s": time.monotonic() - start})
    file.unlink()


def main() -> None:
    """Tune what was asked for, within the minutes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["resnet50", "llama"])
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--peers", default="eager,autotune")
    parser.add_argument("--unchecked", action="store_true", help="no check of traces by isl")
    parser.add_argument("--peer", help="the figures of one peer, for this script itself")
    given = parser.parse_args()
    if given.peer:
        given.out.write_text(json.dumps(peer(given.names[0], given.peer)))
        return
    report, end = Report(given.out), time.monotonic() + 60 * given.minutes
    for number, model in enumerate(given.names):
        share = (end - time.monotonic()) / (len(given.names) - number)
        stop = time.monotonic() + share
        print(f"{model}: {share:.0f} s", flush=True)
        tuning = share * TUNING_SHARE
        guarded(
            report, model, "ours", partial(ours, model, given.out, tuning, report, given.unchecked)
        )
        for name in filter(None, given.peers.split(",")):
            limit = min(PEER_SHARE * share, stop - time.monotonic())
            if limit < 5:
                report.note(model, **{f"{name}_failed": "no time left"})
                continue
            asked = partial(ask_peer, model, name, given.out, limit, report)
            guarded(report, model, name, asked)
    for model, known in report.figures.items():
        cells = (f"{k} {v:.4g}" for k, v in known.items() if isinstance(v, float))
        print(f"{model}: {', '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
