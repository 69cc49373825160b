"""The folder in which a session keeps its files: gone when the session is, however it ended.

A folder is locked as long as its owner lives. What is found unlocked belonged to a process that was
killed, and is removed by the next session.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

PREFIX = "tilewright-tune-"
_LOCK = "lock"


@contextmanager
def scratch_folder(parent: Path | None = None) -> Iterator[Path]:
    """A new folder for the time of a `with` block; those of dead owners are removed."""
    parent = parent or Path(tempfile.gettempdir())
    remove_abandoned(parent)
    folder = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=parent))
    try:
        # Held by this process and by none that it starts: a lock goes with its last holder.
        with open(folder / _LOCK, "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            # Only now under a name at which others look for what is not locked.
            folder = folder.rename(folder.with_name(folder.name.removeprefix(".")))
            yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(parent: Path) -> list[Path]:
    """Remove the folders whose owners are gone; which these were."""
    return [folder for folder in parent.glob(f"{PREFIX}*") if _remove_if_abandoned(folder)]


def _remove_if_abandoned(folder: Path) -> bool:
    with suppress(OSError):  # another user's, or another session has just removed it
        handle = os.open(folder / _LOCK, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
            return True
        finally:
            os.close(handle)
    return False
