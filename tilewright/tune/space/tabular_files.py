"""Files of measured spaces: the T4 format of the auto-tuning community, and a small one of ours.

T4 keeps everything that was measured of each configuration. Ours keeps one time:

    {"name": ..., "source": ..., "licence": ..., "unit": "ms",
     "knobs": {"tile": [1, 2, 4], ...},
     "configurations": ["012", ...], "times": [1.25, "runtime", ...]}

where a configuration is a string of one character a knob, the place of its value in base 36, and a
text among the times says why there is none. Spaces of programs also have

     "flops": ..., "kind": ..., "workload": ..., "target": ...,
     "traces": ["...", ...], "trace": [0, ...],
     "features": {"program.flops": 27.1, "s0.runs": [18.2, ...], ...}

each trace once and then its place, and one number for a column that is the same for all. Either may
be compressed with gzip.
"""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tilewright.core.errors import TuneError
from tilewright.tune.candidate import Value
from tilewright.tune.space.space import as_value
from tilewright.tune.space.tabular import About, Key, TabularEntry, TabularSpace

# Seconds in what files call a unit of time.
UNITS = {"s": 1.0, "seconds": 1.0, "ms": 1e-3, "miliseconds": 1e-3, "milliseconds": 1e-3}
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def read_space(path: Path) -> TabularSpace:
    """The space in a file of either format."""
    try:
        data = _data(path)
        read = _read_t4 if "results" in data else _read_small
        return read(data, path.name.split(".")[0])
    except (EOFError, gzip.BadGzipFile, KeyError, TypeError, ValueError, IndexError) as error:
        raise TuneError(
            "space.file",
            f"{path} is no file of a measured space: {type(error).__name__}: {error}",
            help="give a file in the T4 format, or one that `write_space` wrote",
        ) from error


def read_origin(path: Path) -> tuple[str, str]:
    """Where the space in a file of our own format comes from, and its licence."""
    data = _data(path)
    return data["source"], data["licence"]


def _data(path: Path) -> Any:
    raw = path.read_bytes()
    return json.loads(gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw)


def write_space(path: Path, space: TabularSpace, source: str, licence: str) -> None:
    """Write a space in the small format, times in milliseconds to five digits."""
    place = {k: {v: DIGITS[i] for i, v in enumerate(vs)} for k, vs in space.knobs.items()}
    rows = sorted(
        (
            ("".join(place[knob][v] for knob, v in zip(space.knobs, key, strict=True)), time, key)
            for key, time in space.rows()
        ),
        key=lambda row: row[0],
    )
    data = {
        "name": space.name,
        "source": source,
        "licence": licence,
        "unit": "ms",
        "knobs": space.knobs,
        "configurations": [row for row, _, _ in rows],
        "times": [t if isinstance(t, str) else _short(t * 1e3) for _, t, _ in rows],
        **_about(space, [key for _, _, key in rows]),
    }
    raw = (json.dumps(data, separators=(",", ":")) + "\n").encode()
    path.write_bytes(gzip.compress(raw, mtime=0) if path.suffix == ".gz" else raw)


def _about(space: TabularSpace, keys: Sequence[Key]) -> dict[str, Any]:
    """What a file says of programs; nothing for other spaces."""
    if not space.programs:
        return {}
    about, programs = space.about, [space.programs[key] for key in keys]
    traces = {text: place for place, text in enumerate(dict.fromkeys(p.trace for p in programs))}
    columns = zip(*(program.features for program in programs), strict=True)
    return {
        "flops": about.flops,
        "kind": about.kind,
        "workload": about.workload,
        "target": about.target,
        "traces": [*traces],
        "trace": [traces[program.trace] for program in programs],
        "features": {
            name: _short(column[0]) if len(set(column)) == 1 else [*map(_short, column)]
            for name, column in zip(about.columns, columns, strict=True)
        },
    }


def _short(number: float) -> float:
    return float(f"{number:.5g}")


def _read_t4(data: Mapping[str, Any], name: str) -> TabularSpace:
    unit = UNITS[data.get("metadata", {}).get("timeunit", "ms")]
    times: dict[tuple[Value, ...], float] = {}
    failures: dict[tuple[Value, ...], str] = {}
    names = tuple(data["results"][0]["configuration"])
    for row in data["results"]:
        key = tuple(row["configuration"][knob] for knob in names)
        if row["invalidity"] != "correct":
            failures[key] = row["invalidity"]
            continue
        measured = {m["name"]: m["value"] for m in row["measurements"]}
        times[key] = _time(measured["time"] * unit)
    keys = [*times, *failures]
    knobs = {knob: sorted({key[i] for key in keys}, key=_order) for i, knob in enumerate(names)}
    return TabularSpace(name, knobs, times, failures)


def _read_small(data: Mapping[str, Any], name: str) -> TabularSpace:
    unit = UNITS[data["unit"]]
    knobs = {knob: tuple(map(as_value, values)) for knob, values in data["knobs"].items()}
    times: dict[tuple[Value, ...], float] = {}
    failures: dict[tuple[Value, ...], str] = {}
    keys: list[Key] = []
    for row, time in zip(data["configurations"], data["times"], strict=True):
        key = tuple(vs[int(digit, 36)] for digit, vs in zip(row, knobs.values(), strict=True))
        keys.append(key)
        if isinstance(time, str):
            failures[key] = time
        else:
            times[key] = _time(time * unit)
    about, programs = _read_programs(data, keys) if "features" in data else (None, None)
    return TabularSpace(data.get("name", name), knobs, times, failures, programs, about)


def _read_programs(
    data: Mapping[str, Any], keys: Sequence[Key]
) -> tuple[About, dict[Key, TabularEntry]]:
    features = data["features"]
    table = np.empty((len(keys), len(features)))
    for place, column in enumerate(features.values()):
        table[:, place] = column  # one number for all, or one for each
    traces = [data["traces"][place] for place in data["trace"]]
    programs = [TabularEntry(t, tuple(row)) for t, row in zip(traces, table.tolist(), strict=True)]
    kind, workload, target = (str(data[field]) for field in ("kind", "workload", "target"))
    about = About(float(data["flops"]), kind, workload, target, (*features,))
    return about, dict(zip(keys, programs, strict=True))


def _time(seconds: float) -> float:
    if not (math.isfinite(seconds) and seconds > 0):
        raise ValueError(f"a time of {seconds}")
    return seconds


def _order(value: Value) -> tuple[str, Value]:
    """Numbers before texts, each in their order."""
    return ("" if isinstance(value, int | float) else type(value).__name__, value)
