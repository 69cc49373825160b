"""A tabular space with the features of this version; its times stay as they were measured.

Programs are rebuilt from the workload and their traces, which takes milliseconds each.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.errors import Error, TuneError
from tilewright.schedule.trace import parse_trace
from tilewright.tune.features.program import feature_names, features_for
from tilewright.tune.space.tabular import TabularEntry, TabularSpace
from tilewright.tune.target_key import parse_target
from tilewright.tune.workload import parse_workload


def refreshed(space: TabularSpace) -> TabularSpace:
    """The same space with new features."""
    about = space.about
    try:
        func, _ = parse_workload(about.workload)
        target = parse_target(about.target)
        rows = {
            trace: tuple(features_for(parse_trace(trace).replay(func), target).tolist())
            for trace in dict.fromkeys(one.trace for one in space.programs.values())
        }
    except (Error, ValueError, TypeError) as error:
        raise TuneError(
            "lab.refresh",
            f"the programs of {space.name} cannot be made again: {error}",
            help="record the space anew",
        ) from error
    times = {key: time for key, time in space.rows() if not isinstance(time, str)}
    failures = {key: why for key, why in space.rows() if isinstance(why, str)}
    programs = {
        key: TabularEntry(one.trace, rows[one.trace]) for key, one in space.programs.items()
    }
    new = replace(about, columns=feature_names())
    return TabularSpace(space.name, space.knobs, times, failures, programs, new)
