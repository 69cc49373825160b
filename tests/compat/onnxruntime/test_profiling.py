from __future__ import annotations

import json
import time
from pathlib import Path

from tilewright.compat.onnxruntime.profiling import SessionTrace


def test_events_are_written_in_order(tmp_path: Path) -> None:
    trace = SessionTrace(str(tmp_path / "p"))
    for name in ("a", "b"):
        begin = time.perf_counter_ns()
        time.sleep(0.002)
        trace.add(name, begin)
    path = Path(trace.write())
    assert path.name.startswith("p_")
    a, b = json.loads(path.read_text())
    assert (a["name"], b["name"]) == ("a", "b")
    assert a["dur"] >= 2000
    assert b["ts"] >= a["ts"] + a["dur"]
