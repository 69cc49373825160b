"""Writing a file so that it is there whole or not at all.

atomic_write("model.tw", lambda temporary: temporary.write_bytes(data))
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tilewright.core.errors import ConfigError

TEMPORARY = ".tmp-"
"""How the name of a file that is still being written begins."""

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})
_ELSEWHERE = "or choose another place"
_INSTEAD = {"cache": "or choose another place with TW_CACHE_DIR, or run with TW_CACHE=off"}
_FORBIDDEN = frozenset({errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO})


def atomic_write(
    path: str | os.PathLike[str], write: Callable[[Path], object], *, area: str = "file"
) -> Path:
    """Let `write` fill a temporary file beside `path`, then put it in the place of `path` at once.

    Whatever goes wrong, `path` keeps its old content and the temporary file is removed. A full disk
    or a place that cannot be written is a `ConfigError`, its code beginning with `area`. Links are
    followed; a device or a pipe is written directly, since replacing it would destroy it.
    """
    path = Path(path)
    try:
        target = Path(os.path.realpath(path))
        mode = _mode(target)
        if mode is not None and not stat.S_ISREG(mode):
            return _write_in_place(path, target, mode, write, area)
        temporary = target.with_name(f"{TEMPORARY}{os.urandom(8).hex()}-{target.name[:100]}")
        _create(temporary, mode)
    except OSError as error:
        raise write_error(error, path, area) from error
    try:
        _fill(temporary, path, write, area)
        _publish(temporary, target, path, area)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    return path


def write_error(error: OSError, path: Path, area: str) -> ConfigError:
    """What to tell the user when `path` could not be written because of `error`."""
    if error.errno in _DISK_FULL:
        return ConfigError(
            f"{area}.disk-full",
            f"no space left to write {path}",
            help=f"free some space on the disk of {path.parent}, {_INSTEAD.get(area, _ELSEWHERE)}",
        )
    return ConfigError(
        f"{area}.unwritable",
        f"cannot write {path}: {error.strerror or error}",
        help=f"see that the directory {path.parent} exists and may be written, "
        f"{_INSTEAD.get(area, _ELSEWHERE)}",
    )


def _mode(target: Path) -> int | None:
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        return None


def _create(temporary: Path, mode: int | None) -> None:
    """An empty new file, with the permissions of the file it will replace, or the user's usual."""
    handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
    try:
        if mode is not None:
            os.fchmod(handle, stat.S_IMODE(mode))
    finally:
        os.close(handle)


def _fill(file: Path, path: Path, write: Callable[[Path], object], area: str) -> None:
    try:
        write(file)
    except OSError as error:
        # An error about some other file is the caller's own and goes through as it is.
        about_us = error.filename is None or Path(error.filename) == file
        if about_us and error.errno in _DISK_FULL | _FORBIDDEN:
            raise write_error(error, path, area) from error
        raise


def _publish(temporary: Path, target: Path, path: Path, area: str) -> None:
    try:
        handle = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(handle)  # some disks report only here that they are full
        finally:
            os.close(handle)
        os.replace(temporary, target)
    except OSError as error:
        raise write_error(error, path, area) from error


def _write_in_place(
    path: Path, target: Path, mode: int, write: Callable[[Path], object], area: str
) -> Path:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    _fill(target, path, write, area)
    return path
