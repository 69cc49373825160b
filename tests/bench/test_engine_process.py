from __future__ import annotations

import sys

import pytest

from tilewright.bench.engine_process import EngineFailed, EngineProcess

ECHO = """
import json, os, sys
print(json.dumps({"variable": os.environ["TRIED"]}), flush=True)
for line in sys.stdin:
    print(json.dumps({"ms": [float(line)]}), flush=True)
"""


def _worker(program: str) -> EngineProcess:
    return EngineProcess([sys.executable, "-c", program], {"TRIED": "yes"})


def test_questions_and_answers() -> None:
    worker = _worker(ECHO)
    try:
        assert worker.load(10) == {"variable": "yes"}
        sample = worker.sample(2.5, 10)
        assert sample["ms"] == [2.5]
        assert sample["others"] >= 0
        assert worker.ask("3", 10) == {"ms": [3.0]}
    finally:
        worker.close()
    worker.close()  # once more does no harm


def test_how_a_process_ended() -> None:
    worker = _worker("raise ValueError('too much')")
    with pytest.raises(EngineFailed, match="exit status 1: ValueError: too much"):
        worker.load(10)
    worker.close()
    quiet = _worker("raise SystemExit(3)")
    with pytest.raises(EngineFailed, match="exit status 3: no message"):
        quiet.load(10)
    quiet.close()


def test_silence() -> None:
    worker = _worker("import time; time.sleep(60)")
    with pytest.raises(EngineFailed, match="no answer in 0 s"):
        worker.load(0.2)
    worker.close()
