"""Measure larger parts of spaces of schedules once, for the ring to replay.

    python benchmarks/kernels.py --group tuned --missing      # write the operators first
    python benchmarks/record_spaces.py --out spaces
    tilewright lab --space spaces/gemm_512-sketches.json.gz --trials 128 --seeds 100

One thread, so that times are those of the processor; still the machine should do nothing else. A
space that is in the folder already is left out, so that a run which was ended goes on where it was.
Each takes some minutes; after `--minutes` of them no further one is begun. What is printed of each
says how many of its candidates are within 5 % of the best: the fewer, the more it tells.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

CACHE = Path(__file__).parent / "results" / "cache"

# The operator and the kind of schedules: what the tuner searches unless told otherwise, others.
RECORDED = (
    ("gemm_512", "constructed"),
    ("conv3x3_14x14_256to256", "constructed"),
    ("softmax_512x1000", "constructed"),
    ("linear_128x768x3072", "constructed"),
    ("layernorm_512x768", "constructed"),
    ("depthwise3x3_112x112_96to96", "constructed"),
    ("bmm_12x128x64", "constructed"),
    ("conv1x1_14x14_256to512_s2", "constructed"),
    ("conv3x3_28x28_128to128", "constructed"),
    ("conv3x3_56x56_64to64", "constructed"),
    ("linear_1x4096x4096", "constructed"),
    ("rowsum_4096x4096", "constructed"),
    ("gemm_512", "sketches"),
    ("bmm_12x128x64", "sketches"),
)


def record(name: str, kind: str, arguments: argparse.Namespace) -> bool:
    """Measure one space into a file of its own; whether that worked."""
    made = arguments.out / "new"
    model = arguments.cache / "tuned" / name / "model.onnx"
    command = [sys.executable, "-m", "tilewright", "lab", "record", model, "--out", made]
    options = ["--limit", arguments.limit, "--space", kind, "--threads", 1]
    done = subprocess.run(list(map(str, [*command, *options])), check=False)
    if done.returncode == 0:
        (made / f"{name}.json.gz").rename(file_of(name, kind, arguments))
    return done.returncode == 0


def file_of(name: str, kind: str, arguments: argparse.Namespace) -> Path:
    """Where the space goes once it is whole."""
    return Path(arguments.out / f"{name}-{kind}.json.gz")


def main() -> None:
    """Record what is not there yet."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="operators (default: all)")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--limit", type=int, default=300, help="candidates of a space")
    parser.add_argument("--minutes", type=float, default=25.0)
    parser.add_argument("--cache", type=Path, default=CACHE)
    arguments = parser.parse_args()
    begun, failed = time.monotonic(), []
    for name, kind in RECORDED:
        wanted = not arguments.names or name in arguments.names
        if not wanted or file_of(name, kind, arguments).exists():
            continue
        if time.monotonic() - begun > 60 * arguments.minutes:
            print(f"{name} {kind}: no time left; the same command goes on")
            continue
        start = time.monotonic()
        if not record(name, kind, arguments):
            failed.append(name)
        print(f"{name} {kind}: {time.monotonic() - start:.0f} s", flush=True)
    if failed:
        sys.exit(f"not recorded: {', '.join(failed)}")


if __name__ == "__main__":
    main()
