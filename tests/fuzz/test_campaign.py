"""Random graphs against the interpreter: a fixed seed, a bounded time, no findings."""

from __future__ import annotations

import json
import subprocess
import sys

from tilewright.fuzz.campaign import FuzzReport, check_result, signature
from tilewright.fuzz.differential_check import CheckResult
from tilewright.fuzz.sandbox import Outcome


def test_no_random_graph_goes_wrong() -> None:
    # In a process of its own: what forks should have no threads.
    command = [sys.executable, "-m", "tilewright", "fuzz", "--graphs", "20", "--seconds", "15"]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=300)
    report = json.loads(done.stdout)
    assert report["findings"] == []
    assert done.returncode == 0
    assert report["kinds"]["right"] >= 5
    assert 0 < report["compared_with_reference"] <= report["compared"] <= report["tried"]
    assert set(report["operators_met_by_reference"]) <= set(report["operators"])


def test_outcomes_become_verdicts() -> None:
    assert check_result(Outcome("hang", "")).kind == "hang"
    assert check_result(Outcome("exception", "Traceback")).kind == "internal"
    assert check_result(Outcome("done", {"kind": "right", "detail": ""})) == CheckResult("right")


def test_a_finding_keeps_its_kind_of_error_when_it_is_shrunk() -> None:
    one = CheckResult("error", "TypeCheckError[a.b]: 3 is not 4\n  --> x")
    other = CheckResult("error", "TypeCheckError[a.b]: 5 is not 6")
    assert signature(one) == signature(other)
    assert signature(one) != signature(CheckResult("error", "LoweringError[c]: 3"))
    trace = 'File "/a/tilewright/ir/x.py", line 5, in f\n    x\nKeyError: 3'
    assert signature(CheckResult("internal", trace))[1].startswith("KeyError")


def test_a_report_counts() -> None:
    report = FuzzReport()
    report.kinds.update(["right", "right", "wrong"])
    report.kinds.update(["refused", "uncompared", "like another"])
    assert report.as_json()["tried"] == 5
    assert report.as_json()["compared"] == 3
