from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.tune.measure.scratch_dir import PREFIX, remove_abandoned, scratch_folder

HOLD = """
import signal, sys, time
from pathlib import Path
from tilewright.tune.measure.scratch_dir import scratch_folder
# whoever starts tests in the background has them ignore interrupts, and their children too
signal.signal(signal.SIGINT, signal.default_int_handler)
with scratch_folder(Path(sys.argv[1])) as folder:
    (folder / "model.tw").write_text("x")
    print(folder, flush=True)
    time.sleep(600)
"""


def held(parent: Path) -> tuple[subprocess.Popen[str], Path]:
    """A session in a process of its own, and its folder."""
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(parent)], stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout is not None
    return owner, Path(owner.stdout.readline().strip())


def test_it_goes_with_the_block(tmp_path: Path) -> None:
    with scratch_folder(tmp_path) as folder:
        assert folder.name.startswith(PREFIX)
        (folder / "inner").mkdir()
        (folder / "inner" / "file").write_text("x")
    with pytest.raises(ZeroDivisionError), scratch_folder(tmp_path):
        raise ZeroDivisionError
    assert not list(tmp_path.iterdir())


def test_it_goes_after_an_interrupt(tmp_path: Path) -> None:
    owner, folder = held(tmp_path)
    with owner:
        assert (folder / "model.tw").is_file()
        owner.send_signal(signal.SIGINT)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_session_left_is_removed_by_the_next(tmp_path: Path) -> None:
    owner, folder = held(tmp_path)
    with owner, scratch_folder(tmp_path):
        assert folder.is_dir()  # its owner lives
        owner.kill()
    assert (folder / "model.tw").is_file()
    (tmp_path / f"{PREFIX}other").mkdir()  # not one of these: it has no lock
    with scratch_folder(tmp_path) as mine:
        assert not folder.exists()
        assert mine.is_dir()
    assert remove_abandoned(tmp_path) == []
