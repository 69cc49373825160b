"""Tune a model on a Ray cluster, then compile it with what was found.

    pip install 'tilewright[cluster]'
    python examples/tune_on_ray.py model.onnx                               # two workers here
    python examples/tune_on_ray.py model.onnx --cluster 10.0.0.1:6379       # a cluster that runs

Every worker measures candidates for the schedules of the model's kernels; machines that are not of
this one's kind are left out. All measurements go into a file of records, and the same command again
goes on from there. Compiled with the records, a kernel takes a schedule that was found to be
faster than the built-in one, and computes the same.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw


def main() -> None:
    """Tune, compile, compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--cluster", default="local:2", help="an address, or local:WORKERS")
    parser.add_argument("--trials", type=int, default=128, help="measurements in all")
    parser.add_argument("--records", type=Path, default=Path("records.db"))
    arguments = parser.parse_args()

    report = tune(arguments.model, arguments.cluster, arguments.trials, arguments.records)
    for kernel in report["kernels"]:
        gain = f"{kernel['gain']:.2f} times as fast" if kernel["gain"] else "built-in schedule kept"
        print(f"{kernel['kernel']}: {kernel['trials']} measurements, {gain}")

    plain, tuned = tw.compile(arguments.model), tw.compile(arguments.model, tuned=arguments.records)
    inputs = random_inputs(plain.inputs)
    expected, found = plain.run(inputs), tuned.run(inputs)
    for name, array in found.items():
        print(f"{name}: {np.abs(array - expected[name]).max():.1e} from the model without tuning")


def tune(model: Path, cluster: str, trials: int, records: Path) -> dict[str, Any]:
    """The report of `tilewright tune`; it shows its own progress and errors."""
    command = [sys.executable, "-m", "tilewright", "tune", model, "--db", records, "--json"]
    options = ["--cluster", cluster, "--trials", str(trials)]
    done = subprocess.run([*command, *options], stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return json.loads(done.stdout)


def random_inputs(ports: tuple[Any, ...], size: int = 8) -> dict[str, np.ndarray]:
    """Random numbers for each input, symbolic sizes being `size`."""
    rng = np.random.default_rng(0)
    shapes = {port.name: [d if isinstance(d, int) else size for d in port.shape] for port in ports}
    return {port.name: rng.random(shapes[port.name]).astype(port.dtype.numpy) for port in ports}


if __name__ == "__main__":
    main()
