from __future__ import annotations

import subprocess
import sys


def test_python_dash_m() -> None:
    command = [sys.executable, "-m", "tilewright", "list", "targets"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "native" in done.stdout
