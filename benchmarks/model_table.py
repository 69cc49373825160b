"""Programs that measure models of the zoo one by one: arguments, a row each, the results file."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from latency import choose
from machine import describe_machine
from results_file import write_results

from tilewright.target.host import usable_cores

ZOO = Path(__file__).resolve().parent / "results" / "cache"

# What is measured of the model in a folder, and the line that shows it.
Measure = Callable[[Path], dict[str, Any]]
Line = Callable[[dict[str, Any]], str]


class MeasureFailed(Exception):
    """A model that could not be compiled or run; the text says why."""


def print_table(about: str, head: str, measure: Measure, line: Line) -> None:
    """Measure the models that the command names, print a line each, write JSON if asked."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument("models", nargs="*", help="models or groups (default: all models)")
    parser.add_argument("--cache", type=Path, default=ZOO)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    rows = []
    print(head)
    for name in choose(arguments.models, arguments.cache):
        try:
            row = {"model": name, **measure(arguments.cache / name)}
        except MeasureFailed as error:
            print(f"{name:20} failed: {error}", flush=True)
            continue
        rows.append(row)
        print(f"{name:20} {line(row)}", flush=True)
    if arguments.json:
        write_results(arguments.json, describe_machine((usable_cores(),)), results=rows)
