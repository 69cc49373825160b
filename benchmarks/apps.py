"""Real applications, unchanged, on ONNX Runtime and on the drop-in: the same answers, and how fast.

    python benchmarks/apps.py                     # makes build/apps/venv, runs everything
    python benchmarks/apps.py silero rapidocr --seconds 10 --json apps.json
    python benchmarks/apps.py --models            # every .onnx file inside their packages as well

Each application (`benchmarks/applications/run_*.py`) runs in a process of its own, as it is and
under `tilewright run-app`, in turn; what counts is the least time for all inputs, and the least
time of all processors (a thread that waits for work by polling uses that too). Answers that differ
are shown and make the command fail. The first run on the drop-in compiles the models; the table's
`start` is the time to the first answer with what the compile cache then has.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
HERE = ROOT / "benchmarks" / "applications"
# torch comes first and alone, so that no other package pulls another build of it.
PACKAGES = (
    ["torch==2.13.0"],
    ["magika", "rapidocr", "rapidocr-onnxruntime", "silero-vad", "onnxruntime"],
    ["espeakng-loader", "pillow"],
    ["--editable", str(ROOT)],
)


class App(NamedTuple):
    """An application: what it is run on, and what its answers are."""

    inputs: str
    answers: str


APPS = {
    "magika": App("files", "file types"),
    "silero": App("sounds", "spans of speech"),
    "rapidocr": App("images", "lines of text"),
    "rapidocr_onnxruntime": App("images", "lines of text"),
}
ENGINES = ("onnxruntime", "tilewright")


def environment(folder: Path) -> Path:
    """The Python of an environment with the applications, made if it is not there."""
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        for packages in PACKAGES:
            subprocess.run([str(python), "-m", "pip", "install", *packages], check=True)
    return python


def run(python: Path, name: str, engine: str, inputs: Path, seconds: float) -> dict[str, Any]:
    """One process of an application: what it reports, and the seconds to its first answer."""
    program = [str(python), str(HERE / f"run_{name}.py"), str(inputs), str(seconds)]
    if engine == "tilewright":
        program = [str(python), "-m", "tilewright", "run-app", "--", *program]
    start = time.perf_counter()
    done = subprocess.run(program, capture_output=True, text=True, check=False, cwd=ROOT)
    whole = time.perf_counter() - start
    if done.returncode != 0:
        sys.exit(f"{name} on {engine} failed:\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["engine"] == engine
    found["start"] = whole - found["rest"]
    return found


def measure(python: Path, name: str, folder: Path, seconds: float, rounds: int) -> dict[str, Any]:
    """An application on both engines in turn, the least times of all rounds."""
    inputs = folder / "inputs" / APPS[name].inputs
    compiled = run(python, name, "tilewright", inputs, 0)["start"]
    row: dict[str, Any] = {"app": name, "compiling": compiled}
    for _ in range(rounds):
        for engine in ENGINES:
            found = run(python, name, engine, inputs, seconds)
            kept = row.setdefault(engine, found)
            for key in ("least", "cpu", "start"):
                kept[key] = min(kept[key], found[key])
    row["differ"] = differences(*(row[engine].pop("answers") for engine in ENGINES))
    return row


def differences(expected: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The answers that differ, by input."""
    names = sorted({*expected, *found})
    pairs = {name: (expected.get(name), found.get(name)) for name in names}
    return {"inputs": len(names), "wrong": {n: p for n, p in pairs.items() if p[0] != p[1]}}


def show(row: dict[str, Any]) -> None:
    """One line of the table."""
    theirs, ours = (row[engine] for engine in ENGINES)
    right = row["differ"]["inputs"] - len(row["differ"]["wrong"])
    print(
        f"{row['app']:22} {right:4}/{row['differ']['inputs']:<4} {theirs['least'] * 1e3:10.1f} "
        f"{ours['least'] * 1e3:10.1f} {theirs['least'] / ours['least']:7.2f} "
        f"{theirs['cpu'] * 1e3:10.1f} {ours['cpu'] * 1e3:10.1f} {theirs['cpu'] / ours['cpu']:7.2f} "
        f"{theirs['start']:8.2f} {ours['start']:8.2f} {row['compiling']:10.1f}"
    )
    for name, (expected, found) in row["differ"]["wrong"].items():
        print(f"  {name}: {expected} on ONNX Runtime, {found} here")


def show_models(python: Path, seconds: float) -> list[dict[str, Any]]:
    """The table of the models inside the packages."""
    command = [str(python), str(HERE / "check_models.py"), str(seconds)]
    print(
        "\nmodel                                worst      ms of one thread: ONNX Runtime / drop-in"
    )
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        for line in process.stdout:
            row = json.loads(line)
            rows.append(row)
            times = "   ".join(f"{a:.3f} / {b:.3f}" for a, b in row["milliseconds"])
            print(f"{row['model']:36} {row['worst']:.1e}    {times}", flush=True)
    if process.returncode != 0:
        sys.exit("a model failed")
    return rows


def main() -> None:
    """Run the applications that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("apps", nargs="*", help=f"of {', '.join(APPS)}; default: all")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "apps")
    parser.add_argument("--seconds", type=float, default=5.0, help="of repeating, a process")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--recordings", default="", help="folder of more speech, 48 kHz WAV files")
    parser.add_argument("--models", action="store_true", help="also every .onnx file inside")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    unknown = [name for name in options.apps if name not in APPS]
    if unknown:
        parser.error(f"no application {', '.join(unknown)}")
    python = environment(options.folder / "venv")
    recordings = [options.recordings] if options.recordings else []
    make = [str(python), str(HERE / "inputs.py"), str(options.folder / "inputs"), *recordings]
    subprocess.run(make, check=True)
    print(
        f"{'application':22} {'equal':9} {'ORT ms':>10} {'drop-in':>10} {'faster':>7} "
        f"{'CPU ms':>10} {'drop-in':>10} {'faster':>7} {'start s':>8} {'drop-in':>8} "
        f"{'compiling':>10}"
    )
    rows = []
    for name in options.apps or APPS:
        rows.append(measure(python, name, options.folder, options.seconds, options.rounds))
        show(rows[-1])
    models = show_models(python, options.seconds / 5) if options.models else []
    if options.json:
        options.json.write_text(json.dumps({"apps": rows, "models": models}, indent=1))
    if any(row["differ"]["wrong"] for row in rows):
        sys.exit("answers differ")


if __name__ == "__main__":
    main()
