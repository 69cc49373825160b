from __future__ import annotations

from tilewright.driver.report.explorer.timeline import timeline


def _step(group: int, ms: float | None) -> dict[str, object]:
    return {"kernel": 0, "nodes": [], "group": group, "min_ms": ms, "least_ms": 0.5}


def test_steps_of_a_group_begin_together() -> None:
    events = timeline([_step(0, 1), _step(1, 2), _step(1, 5), _step(3, None)], ["mm"], True)
    assert [(e["ts"], e["dur"], e["tid"]) for e in events] == [
        (0, 1000, 0),
        (1000, 2000, 0),
        (1000, 5000, 1),
        (6000, 0, 0),
    ]
    assert all(e["ph"] == "X" and e["name"] == "mm" for e in events)


def test_without_measured_times_the_roof_counts() -> None:
    first, second = timeline([_step(0, None), _step(1, None)], ["mm"], False)
    assert (first["dur"], second["ts"]) == (500, 500)
