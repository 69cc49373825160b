from __future__ import annotations

import logging
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from tests.driver.bisect.deep_model import deep_input, deep_model
from tilewright.driver.load import load
from tilewright.runtime.cpu.executable import Executable

SCRIPT = """
import sys, numpy as np, tilewright as tw
model = tw.load(sys.argv[1])
model(np.zeros((3, 12), np.float32))
wrong = [m for m in sys.modules if m.startswith(("onnx", "llvmlite", "tilewright.passes"))]
assert not wrong, wrong
"""


def test_a_model_that_is_compiled_whole_needs_no_compiler(tmp_path: Path) -> None:
    made = tw.compile(deep_model(1), threads=1, cache=False)
    path = made.save(tmp_path / "model.tw")
    model = load(path)
    assert isinstance(model, Executable)
    np.testing.assert_array_equal(model.run(deep_input())["y"], made.run(deep_input())["y"])
    subprocess.run([sys.executable, "-c", SCRIPT, str(path)], check=True)


def test_the_log_says_what_was_loaded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with tw.compile(deep_model(1), threads=1, cache=False) as model:
        path = model.save(tmp_path / "model.tw")
    with caplog.at_level(logging.INFO, logger="tilewright.runtime"):
        tw.load(path).close()
    (line,) = (r.getMessage() for r in caplog.records)
    assert re.fullmatch(r"loaded model\.tw in [0-9.]+ ms: 0\.0 MB of weights", line)
