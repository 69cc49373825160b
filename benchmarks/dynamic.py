"""What symbolic sizes cost: models exported with fixed and with symbolic sizes, on equal inputs.

    python benchmarks/dynamic.py [models] [--quick] [--json dynamic.json]

For each pair of the zoo, `<name>` and `<name>_dynamic`, every engine runs both files on the inputs
of the fixed one, all in the same interleaved rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from typing import Any

from latency import add_arguments, entry, known_rows, pythons_of, settings_of, write
from machine import describe_machine

from tilewright.bench.interleaved import measure

SUFFIX = "_dynamic"


def pairs(arguments: argparse.Namespace) -> list[str]:
    """The models that are there with both kinds of sizes."""
    found = [path.parent.name for path in arguments.cache.glob(f"*{SUFFIX}/model.onnx")]
    names = sorted(name.removesuffix(SUFFIX) for name in found)
    return [name for name in names if not arguments.models or name in arguments.models]


def measure_pair(
    name: str, pythons: Mapping[str, str], arguments: argparse.Namespace
) -> list[dict[str, Any]]:
    """Both files of one model: a row an engine that ran both."""
    data = arguments.cache.resolve() / name
    folders = {"static": data, "dynamic": data.with_name(name + SUFFIX)}
    entries = [
        entry(engine, folder, data, arguments.threads, python, f"{engine} {kind}")
        for engine, python in pythons.items()
        for kind, folder in folders.items()
    ]
    found = {r.label: r.summary() for r in measure(entries, settings_of(arguments))}
    rows = []
    for engine in pythons:
        times = {kind: found[f"{engine} {kind}"] for kind in folders}
        for kind, row in times.items():
            print(f"{name} {engine} {kind}: {row.get('failure') or format(row['min_ms'], '.3f')}")
        if not any("failure" in row for row in times.values()):
            figures = {f"{kind}_ms": row["min_ms"] for kind, row in times.items()}
            rows.append({"model": name, "engine": engine, **figures})
    return rows


def main() -> None:
    """Measure the pairs, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", help="names of the fixed models (default: all pairs)")
    add_arguments(parser)
    arguments = parser.parse_args()
    chosen = pairs(arguments)
    if not chosen:
        sys.exit(f"no pairs in {arguments.cache}: run benchmarks/zoo.py first")
    pythons, rows = pythons_of(arguments), known_rows(arguments)
    machine = describe_machine((1, arguments.threads))
    for name in chosen:
        if name in {row["model"] for row in rows}:
            continue
        rows += measure_pair(name, pythons, arguments)
        if arguments.json:
            write(arguments.json, machine, rows)


if __name__ == "__main__":
    main()
