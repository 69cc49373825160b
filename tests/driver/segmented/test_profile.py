from __future__ import annotations

import time

from tilewright.driver.segmented.profile import Clock, segment_profile, timed


def run() -> None:
    with timed("outer"):
        for _ in range(2):
            with timed("inner"):
                time.sleep(0.01)


def test_what_is_inside_counts_for_itself_alone() -> None:
    with Clock() as clock:
        run()
    run()  # nobody listens
    assert list(clock.times) == ["outer", "inner"]
    assert len(clock.times["inner"]) == 2
    assert clock.times["outer"][0] < clock.times["inner"][0]


def test_profile() -> None:
    clocks = [Clock({"a": [3_000_000, 1_000_000], "b": [12_000_000]}), Clock({"a": [6_000_000]})]
    rows = segment_profile(clocks, {"a": "segment 1", "b": "host B"}).data()["parts"]
    assert [(r["name"], r["calls"], r["min_ms"]) for r in rows] == [
        ("segment 1", 2, 4),
        ("host B", 1, 0),
    ]
    text = str(segment_profile(clocks[:1], {"a": "segment 1", "b": "host B"}))
    assert "25.0%" in text
    assert "75.0%" in text
