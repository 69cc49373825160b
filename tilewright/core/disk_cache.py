"""Results kept on disk, named by the fingerprint of everything they were made from.

    store = DiskCache(Path("~/.cache/tilewright").expanduser())
    key = fingerprint("object", llvm_text, target)
    path = store.get_or_put(key, lambda temporary: temporary.write_bytes(compile()))

Several processes may use one directory at once: a file appears whole or not at all, and `lock`
keeps two of them from making the same thing. A cache that cannot be written raises `ConfigError`
("cache.disk-full", "cache.unwritable"); `go_on_without` makes a warning of it, and `keep` is `put`
for who goes on without.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import logging
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from tilewright.core.atomic_write import TEMPORARY, atomic_write, write_error
from tilewright.core.config import config
from tilewright.core.errors import ConfigError

_LOG = logging.getLogger(__name__)
_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{1,199}")
_UNWRITABLE = ("cache.disk-full", "cache.unwritable")
_ABANDONED_AFTER = 24 * 3600.0  # seconds; no process writes one file for so long
_MEMO_FROM = 8 << 20  # bytes; hashing a smaller file takes about ten milliseconds
_SETTLED_AFTER = 2.0  # seconds; the times of some file systems are this coarse


def open_cache() -> DiskCache | None:
    """The user's cache as the switches say, or None where it is off."""
    now = config()
    if not now.cache:
        return None
    return _shared(now.cache_dir, now.cache_limit_gb * 1e9)


class DiskCache:
    """A directory of files by key; beyond `limit` bytes the longest unused ones are removed.

    A key is a fingerprint, with a suffix where the kind of file matters ("3f…e2.so").
    """

    def __init__(self, root: Path, limit: float = float("inf")) -> None:
        self.root = root
        self.limit = limit
        self._written: int | None = None
        self._warned = False

    def path(self, key: str) -> Path:
        """Where the file of `key` lies, or would."""
        assert _KEY.fullmatch(key), f"bad cache key {key!r}"
        return self.root / "objects" / key[:2] / key

    def get(self, key: str) -> Path | None:
        """The file of `key`, marked as just used, or None. Open it soon: it may be evicted."""
        path = self.path(key)
        try:
            os.utime(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError:
            # A cache prepared by someone else can be read though it cannot be marked.
            return path if os.path.isfile(path) else None
        return path

    def put(self, key: str, write: Callable[[Path], object]) -> Path:
        """Let `write` fill the file of `key`; it becomes visible only when complete."""
        path = self.path(key)
        self._make_directory(path.parent)
        atomic_write(path, write, area="cache")
        self._evict_sometimes(path)
        return path

    def keep(self, key: str, write: Callable[[Path], object]) -> None:
        """`put`, where the cache can be written; what it would hold is made again next time."""
        try:
            self.put(key, write)
        except ConfigError as error:
            self.go_on_without(error)

    def go_on_without(self, error: ConfigError) -> None:
        """Warn, once, that the cache cannot be written; any other error is raised."""
        if error.code not in _UNWRITABLE:
            raise error
        if not self._warned:
            self._warned = True
            _LOG.warning("nothing is kept in the cache: %s; %s", error.message, error.help)

    def get_or_put(self, key: str, write: Callable[[Path], object], timeout: float = 600) -> Path:
        """The file of `key`, made by `write` if it is missing, by one process at a time."""
        if (found := self.get(key)) is not None:
            _LOG.debug("hit: %s", key)
            return found
        _LOG.debug("miss: %s", key)
        with self.lock(key, timeout):
            return self.get(key) or self.put(key, write)

    @contextmanager
    def lock(self, key: str, timeout: float = 600) -> Iterator[None]:
        """Hold `key` against all other processes and threads; "cache.busy" after `timeout` seconds.

        The lock ends with its process, however that ends. It is not re-entrant.
        """
        path = self.root / "locks" / self.path(key).name
        self._make_directory(path.parent)
        try:
            handle = _acquire(path, time.monotonic() + timeout)
        except OSError as error:
            raise write_error(error, path, "cache") from error
        try:
            yield
        finally:
            # Removed while still held: whoever waits for it notices, and takes a new file.
            # Where it cannot be removed, an empty file stays and does no harm.
            with suppress(OSError):
                path.unlink()
            os.close(handle)

    def evict(self, keep: Path | None = None) -> None:
        """Remove abandoned files, then the longest unused until the rest is within the limit."""
        entries = sorted(self._entries())
        total = sum(entry.size for entry in entries)
        for entry in entries:
            if total <= self.limit:
                break
            if entry.path != keep:
                _LOG.debug("evicted: %s, %d bytes", entry.path.name, entry.size)
                _remove(entry.path)
                total -= entry.size

    def files(self) -> list[tuple[Path, int]]:
        """All files by key with their sizes, in order."""
        return sorted((entry.path, entry.size) for entry in self._entries())

    def clear(self) -> None:
        """Remove all files; what other processes write meanwhile may stay."""
        for entry in self._entries():
            _remove(entry.path)

    def _evict_sometimes(self, new: Path) -> None:
        """Look at the whole directory after the first file, then once per 1/64 of the limit."""
        first = self._written is None
        with suppress(FileNotFoundError):  # another process may have evicted it already
            self._written = (self._written or 0) + new.stat().st_size
        if first or (self._written or 0) > self.limit / 64:
            self.evict(keep=new)
            self._written = 0

    def _entries(self) -> Iterator[_Entry]:
        oldest = time.time() - _ABANDONED_AFTER
        for path in (self.root / "objects").glob("*/*"):
            with suppress(FileNotFoundError):  # removed by another process meanwhile
                found = path.stat()
                if not path.name.startswith(TEMPORARY):
                    yield _Entry(found.st_mtime_ns, path, found.st_size)
                elif found.st_mtime < oldest:
                    _remove(path)  # its writer was killed

    def _make_directory(self, directory: Path) -> None:
        try:
            # Code is loaded from here: nobody else may put any.
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise write_error(error, directory, "cache") from error


@functools.cache
def _shared(root: Path, limit: float) -> DiskCache:
    """One object a directory, so that it knows how much this process has written."""
    return DiskCache(root, limit)


class _Entry(NamedTuple):
    used: int
    path: Path
    size: int


def _remove(path: Path) -> None:
    # Another process may have been faster; a file of another user stays for its owner to evict.
    with suppress(FileNotFoundError, PermissionError):
        path.unlink()


def _acquire(path: Path, deadline: float) -> int:
    pause = 0.001
    while True:
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_still(handle, path):
                return handle
        except BlockingIOError:
            pass  # somebody else has it: wait below
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)
        if time.monotonic() >= deadline:
            raise ConfigError(
                "cache.busy",
                f"another process has held {path} for too long",
                help="wait until it ends, or run with TW_CACHE=off",
            )
        time.sleep(pause)
        pause = min(2 * pause, 0.05)


def _is_still(handle: int, path: Path) -> bool:
    """Whether `path` still names the locked file: its last holder may have removed it."""
    try:
        return os.path.samestat(os.fstat(handle), path.stat())
    except FileNotFoundError:
        return False


def fingerprint(*parts: bytes | str) -> str:
    """SHA-256 of the parts, in hex; ("ab", "c") and ("a", "bc") differ."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def fingerprint_file(path: str | os.PathLike[str], cache: DiskCache | None = None) -> str:
    """SHA-256 of a file's content, in hex.

    With a cache, that of a large file is remembered for as long as the file is not touched, so that
    a model of gigabytes is read once and not at every start.
    """
    found = os.stat(path)
    # A file changed a moment ago may change again without its time moving on.
    settled = time.time() - found.st_mtime > _SETTLED_AFTER
    if cache is None or found.st_size < _MEMO_FROM or not settled:
        return _digest(path)
    key = fingerprint("file", os.path.realpath(path), *map(str, _identity(found)))
    if (memo := cache.get(key)) is not None:
        with suppress(FileNotFoundError):  # evicted just now
            text = memo.read_text()
            if len(text) == hashlib.sha256().digest_size * 2:
                return text
    result = _digest(path)
    if _identity(os.stat(path)) == _identity(found):
        cache.keep(key, lambda temporary: temporary.write_text(result))
    return result


def _identity(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _digest(path: str | os.PathLike[str]) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
