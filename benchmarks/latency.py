"""Compare the latency of engines on the models of the zoo, side by side in one run.

    python benchmarks/latency.py                    # all models, the usual engines
    python benchmarks/latency.py resnet50 kernels/gemm_512 --engines tilewright,openvino
    python benchmarks/latency.py kernels --quick --json kernels.json --resume
    python benchmarks/latency.py --isa avx2         # as on an x86 machine without AVX-512

Each engine runs in a process of its own with the same number of threads, in interleaved rounds (see
`tilewright/bench/interleaved.py`). Compiling is timed from an empty cache; engines that keep what
they compiled are then measured in a second process, which loads it. The figures are written after
every model, and `--resume` leaves out the models that are in the file already, of the same commit.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine_rows import FEWEST_PEERS, OURS, by_model, means
from engines import ENGINES, QUICK
from isa import LIMITS, limit_to
from machine import describe_machine
from results_file import read_results, write_results
from revision import commit

from tilewright.bench.interleaved import Entry, HarnessSettings, measure
from tilewright.runtime.roofline.machine_roofline import machine_roofline

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WORKER = (str(HERE / "engines.py"),)
# Engines whose package fits into no common environment, and where benchmarks/setup.sh puts it.
OWN_ENVIRONMENTS = dict.fromkeys(
    ("tvm-untuned", "tvm-tuned"), ROOT / ".venv-tvm" / "bin" / "python"
)

# Whose answers the groups of models come with, if not ONNX Runtime's.
REFERENCES = {"recurrent": "TensorFlow"}


def entry(
    engine: str, folder: Path, data: Path, threads: int, python: str, label: str | None = None
) -> Entry:
    """An engine on the model in one folder with the inputs and expected outputs in another."""
    precise = data / "reference.npz"
    return Entry(
        label=label or engine,
        engine=engine,
        model=str(folder / "model.onnx"),
        inputs=str(data / "inputs.npz"),
        threads=threads,
        expected=str(precise if precise.exists() else data / "expected.npz"),
        python=python,
        worker=WORKER,
        keeps=ENGINES[engine].keeps,
        roofline=machine_roofline(threads).data(),
    )


COLUMNS = (  # heading, key, format
    ("engine", "engine", "<17"),
    ("min ms", "min_ms", ">10.3f"),
    ("median ms", "median_ms", ">10.3f"),
    ("cpu ms", "cpu_ms", ">10.3f"),
    ("compile s", "compile_s", ">9.2f"),
    ("load s", "load_s", ">7.2f"),
    ("loading MB", "load_peak_mb", ">10.0f"),
    ("running MB", "run_mb", ">10.0f"),
    ("error", "error", ">8.0e"),
    ("others", "others", ">7.0%"),
)


def width(form: str) -> str:
    """The alignment and width of a format, for headings and empty cells."""
    return form[0] + form[1:].split(".")[0].rstrip("%")


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """The rows of one model as text."""
    lines = ["  " + " ".join(format(heading, width(form)) for heading, _, form in COLUMNS)]
    for row in rows:
        if "failure" in row:
            lines.append(f"  {row['engine']:<17} failed: {row['failure']}")
            continue
        cells = (format(row[k], f) if k in row else format("-", width(f)) for _, k, f in COLUMNS)
        lines.append("  " + " ".join(cells))
    return "\n".join(lines)


def interpreters(engines: Sequence[str], given: Sequence[str]) -> dict[str, str]:
    """Which interpreter runs each engine; `NAME=PATH` speaks of one engine, `PATH` of all."""
    pythons = dict.fromkeys(engines, sys.executable)
    pythons |= {n: str(p) for n, p in OWN_ENVIRONMENTS.items() if n in pythons and p.exists()}
    for text in given:
        name, equals, path = text.rpartition("=")
        pythons.update({name: path} if equals else dict.fromkeys(engines, path))
    return {name: pythons[name] for name in engines}


def installed(pythons: Mapping[str, str]) -> list[str]:
    """The engines that their interpreters have the packages of."""
    found: dict[str, list[str]] = {}
    for python in set(pythons.values()):
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        found[python] = subprocess.check_output(
            [python, *WORKER], text=True, env=environment
        ).split()
    return [name for name, python in pythons.items() if name in found[python]]


def choose(names: Sequence[str], cache: Path) -> list[str]:
    """Models by name, those of a group (a folder of the cache) by its name; by default all alone.

    A name that is not there is an error that says how to make it.
    """
    found = sorted(
        str(path.parent.relative_to(cache))
        for pattern in ("*/model.onnx", "*/*/model.onnx")
        for path in cache.glob(pattern)
    )
    if not names:
        chosen = [name for name in found if "/" not in name]
        return chosen or sys.exit(f"no models in {cache}: run benchmarks/zoo.py first")
    chosen = []
    for name in names:
        matching = [one for one in found if one == name or one.startswith(f"{name}/")]
        if not matching:
            sys.exit(f"no {name} in {cache}: run benchmarks/zoo.py or benchmarks/kernels.py first")
        chosen += matching
    return chosen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What all programs that measure latency take."""
    parser.add_argument("--engines", help="comma separated (default: the usual ones)")
    parser.add_argument("--quick", action="store_true", help=f"{', '.join(QUICK)}; fewer rounds")
    parser.add_argument("--python", action="append", default=[], metavar="[ENGINE=]PATH")
    parser.add_argument("--isa", choices=LIMITS, help="hold engines to older instructions")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rounds", type=int, help="default: 7, with --quick 5")
    parser.add_argument("--seconds", type=float, default=0.3, help="of one engine in a round")
    parser.add_argument("--timeout", type=float, default=600, help="for loading and for a round")
    parser.add_argument(
        "--idle-timeout",
        type=float,
        default=10,
        help="a model's seconds to wait for an idle machine",
    )
    parser.add_argument("--cache", type=Path, default=HERE / "results" / "cache")
    parser.add_argument("--json", type=Path, help="also write the figures there")
    parser.add_argument("--resume", action="store_true", help="keep what is in that file")


def settings_of(arguments: argparse.Namespace) -> HarnessSettings:
    """How long to measure, as the command line says."""
    rounds = arguments.rounds or (5 if arguments.quick else 7)
    return HarnessSettings(rounds, arguments.seconds, arguments.idle_timeout, arguments.timeout)


def pythons_of(arguments: argparse.Namespace) -> dict[str, str]:
    """The engines asked for and who runs them; those that are not installed are left out.

    From here on they are held to the instructions asked for; those that cannot be are left out too.
    """
    if arguments.isa:
        limit_to(arguments.isa)
    named = arguments.engines.split(",") if arguments.engines else None
    usual = [name for name, engine in ENGINES.items() if not engine.on_request]
    engines = named or (list(QUICK) if arguments.quick else usual)
    unknown = [name for name in engines if name not in ENGINES]
    if unknown:
        sys.exit(f"unknown engine {', '.join(unknown)}; there are {', '.join(ENGINES)}")
    pythons = interpreters(engines, arguments.python)
    there = installed(pythons)
    missing = [name for name in engines if name not in there]
    if missing:
        print(
            f"not installed or not to be limited, left out: {', '.join(missing)}", file=sys.stderr
        )
    return {name: pythons[name] for name in there}


def measure_model(
    name: str, pythons: Mapping[str, str], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """All engines on one model: a row each."""
    folder = arguments.cache.resolve() / name
    entries = [entry(e, folder, folder, arguments.threads, p) for e, p in pythons.items()]
    results = measure(entries, settings_of(arguments))
    precise = (folder / "reference.npz").exists()
    known = {"model": name, "threads": arguments.threads}
    usual = REFERENCES.get(name.partition("/")[0], "ONNX Runtime")
    known["reference"] = "torch in f64" if precise else usual
    return [{**known, **result.summary()} for result in results]


def known_rows(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The rows that an earlier run left, where they are to be kept."""
    if not arguments.resume or arguments.json is None or not arguments.json.exists():
        return []
    earlier = read_results(arguments.json)
    if earlier["commit"] != commit():
        sys.exit(
            f"{arguments.json} is of commit {earlier['commit']}, this is {commit()}: "
            "figures of two commits make no table; leave out --resume or remove the file"
        )
    rows: list[dict[str, Any]] = earlier["results"]
    return rows


def write(path: Path, machine: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the figures so far."""
    write_results(path, machine, results=list(rows))


def main() -> None:
    """Measure, print the tables, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="models or groups (default: all models)")
    add_arguments(parser)
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that stopped workers are ended too
    pythons = pythons_of(arguments)
    rows = known_rows(arguments)
    done = {row["model"] for row in rows}
    machine = describe_machine((1, arguments.threads))
    for model in choose(arguments.models, arguments.cache):
        if model in done:
            continue
        fresh = measure_model(model, pythons, arguments)
        print(f"{model}, {arguments.threads} threads\n{table(fresh)}", flush=True)
        rows += fresh
        if arguments.json:
            write(arguments.json, machine, rows)
    print(means(by_model(rows)) or f"no model that {FEWEST_PEERS} other engines ran")
    failed = sorted({r["model"] for r in rows if r["engine"] == OURS and "failure" in r})
    if failed:
        print(f"{OURS} failed on {', '.join(failed)}")


if __name__ == "__main__":
    main()
