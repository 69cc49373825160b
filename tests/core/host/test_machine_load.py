from __future__ import annotations

import os
import subprocess
import sys

from tilewright.core.host.machine_load import busy_seconds, others_seconds, own_seconds


def test_seconds_only_grow() -> None:
    busy, own = busy_seconds(), own_seconds(os.getpid())
    sum(range(300_000))
    assert busy_seconds() >= busy > 0
    assert own_seconds(os.getpid()) >= own
    assert own_seconds(2**30) == 0  # nobody


def test_others_are_all_but_this_process() -> None:
    before = others_seconds()
    subprocess.run([sys.executable, "-c", "sum(range(10_000_000))"], check=True)
    assert others_seconds() > before
