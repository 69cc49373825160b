from __future__ import annotations

import errno
import hashlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilewright.core import disk_cache as disk_cache_module
from tilewright.core.atomic_write import TEMPORARY
from tilewright.core.config import override
from tilewright.core.disk_cache import DiskCache, fingerprint, fingerprint_file, open_cache
from tilewright.core.errors import ConfigError

KEY = fingerprint("a key")


def keys(count: int) -> list[str]:
    return [fingerprint(str(number)) for number in range(count)]


def writing(content: bytes):
    return lambda temporary: temporary.write_bytes(content)


def files(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


@pytest.fixture
def store(tmp_path: Path) -> DiskCache:
    return DiskCache(tmp_path / "cache")


def spawn(program: str, *arguments: object) -> subprocess.Popen[str]:
    head = "import sys, time\nfrom pathlib import Path\nfrom tilewright.core.disk_cache import *\n"
    command = [sys.executable, "-c", head + program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_put_then_get(store: DiskCache) -> None:
    assert store.get(KEY) is None
    path = store.put(KEY, writing(b"code"))
    assert path == store.path(KEY) == store.get(KEY)
    assert path.read_bytes() == b"code"
    assert files(store.root) == [KEY]


def test_reading_makes_no_directory(store: DiskCache) -> None:
    store.get(KEY)
    assert not store.root.exists()


def test_only_the_user_may_put_code_there(store: DiskCache) -> None:
    store.put(KEY, writing(b""))
    assert store.root.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("key", ["", "x", "../../etc", "a/b", ".tmp-x", "a" * 300])
def test_a_key_is_a_plain_name(store: DiskCache, key: str) -> None:
    with pytest.raises(AssertionError):
        store.path(key)


def test_get_or_put_makes_a_thing_once(store: DiskCache) -> None:
    made = []

    def write(temporary: Path) -> None:
        made.append(temporary)
        temporary.write_text("x")

    assert store.get_or_put(KEY, write) == store.get_or_put(KEY, write)
    assert len(made) == 1
    assert files(store.root) == [KEY]


@pytest.mark.parametrize(
    ("number", "code"),
    [
        (errno.ENOSPC, "cache.disk-full"),
        (errno.EDQUOT, "cache.disk-full"),
        (errno.EROFS, "cache.unwritable"),
        (errno.EACCES, "cache.unwritable"),
    ],
)
def test_disk_trouble_while_writing(store: DiskCache, number: int, code: str) -> None:
    def write(temporary: Path) -> None:
        temporary.write_bytes(b"half")
        raise OSError(number, os.strerror(number))

    with pytest.raises(ConfigError) as caught:
        store.put(KEY, write)
    assert caught.value.code == code
    assert caught.value.help
    assert store.get(KEY) is None
    assert files(store.root) == []


@pytest.mark.parametrize("step", ["mkdir", "open"])
@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_read_only_directory(
    store: DiskCache, step: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(ConfigError, match=r"cache\.unwritable"):
            store.put(KEY, writing(b""))
        with pytest.raises(ConfigError, match=r"cache\.unwritable"), store.lock(KEY):
            pass
    assert files(store.root) == []


def test_root_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    store = DiskCache(tmp_path / "cache")
    assert store.get(KEY) is None
    with pytest.raises(ConfigError, match=r"cache\.unwritable"):
        store.put(KEY, writing(b""))


def test_keeping_warns_once_where_nothing_can_be_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "cache").write_text("in the way")
    store = DiskCache(tmp_path / "cache")
    for _ in range(2):
        store.keep(KEY, writing(b""))
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert "TW_CACHE_DIR" in record.getMessage()
    with pytest.raises(ConfigError, match=r"cache\.busy"):
        store.go_on_without(ConfigError("cache.busy", "another process has it"))


def test_read_only_cache_can_be_read(store: DiskCache, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object, **options: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    store.put(KEY, writing(b"code"))
    monkeypatch.setattr(os, "utime", fail)
    assert store.get(KEY) == store.path(KEY)
    assert store.get(fingerprint("other")) is None


def test_the_longest_unused_are_evicted(tmp_path: Path) -> None:
    store = DiskCache(tmp_path)
    names = keys(5)
    for age, key in enumerate(names):
        os.utime(store.put(key, writing(bytes(100))), (age, age))
    store.get(names[0])
    DiskCache(tmp_path, limit=300).evict()
    assert [key for key in names if store.get(key)] == [names[0], names[3], names[4]]


def test_put_keeps_within_the_limit(tmp_path: Path) -> None:
    store = DiskCache(tmp_path, limit=1000)
    for key in keys(40):
        store.put(key, writing(bytes(100)))
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 1000


def test_what_was_just_put_stays_even_beyond_the_limit(tmp_path: Path) -> None:
    store = DiskCache(tmp_path, limit=10)
    for key in keys(3):
        assert store.put(key, writing(bytes(100))).is_file()
    assert len(files(tmp_path)) == 1


def test_abandoned_temporary_files_go_and_fresh_ones_stay(store: DiskCache) -> None:
    folder = store.put(KEY, writing(b"x")).parent
    old, fresh = folder / f"{TEMPORARY}old", folder / f"{TEMPORARY}fresh"
    old.write_text("half")
    fresh.write_text("half")
    os.utime(old, (0, 0))
    store.evict()
    assert files(store.root) == sorted([KEY, fresh.name])


def test_racing_processes_make_a_thing_once(store: DiskCache) -> None:
    program = """
def write(temporary):
    print("made", flush=True)
    time.sleep(0.2)
    temporary.write_bytes(b"x" * 100_000)
path = DiskCache(Path(sys.argv[1])).get_or_put(sys.argv[2], write)
assert path.stat().st_size == 100_000
"""
    racers = [spawn(program, store.root, KEY) for _ in range(3)]
    output = "".join(racer.communicate(timeout=60)[0] for racer in racers)
    assert [racer.returncode for racer in racers] == [0, 0, 0]
    assert output.split() == ["made"]
    assert files(store.root) == [KEY]


def test_racing_writers_never_show_half_a_file(store: DiskCache) -> None:
    program = """
for _ in range(100):
    path = DiskCache(Path(sys.argv[1])).put(sys.argv[2], lambda t: t.write_bytes(b"x" * 50_000))
    assert len(path.read_bytes()) == 50_000
"""
    racers = [spawn(program, store.root, KEY) for _ in range(2)]
    while any(racer.poll() is None for racer in racers):
        if (path := store.get(KEY)) is not None:
            assert len(path.read_bytes()) == 50_000
    assert [racer.wait() for racer in racers] == [0, 0]
    assert files(store.root) == [KEY]


HOLD = """
with DiskCache(Path(sys.argv[1])).lock(sys.argv[2]):
    print("held", flush=True)
    time.sleep(60)
"""


def test_lock_times_out_and_dies_with_its_process(store: DiskCache) -> None:
    holder = spawn(HOLD, store.root, KEY)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        start = time.monotonic()
        with pytest.raises(ConfigError, match=r"cache\.busy"), store.lock(KEY, timeout=0.1):
            pass
        assert time.monotonic() - start >= 0.1
        with store.lock(fingerprint("other"), timeout=0):
            pass
    finally:
        holder.send_signal(signal.SIGKILL)
        holder.communicate()
    with store.lock(KEY, timeout=0):
        pass
    assert files(store.root) == []


def test_lock_excludes_under_contention(store: DiskCache, tmp_path: Path) -> None:
    program = """
store, counter = DiskCache(Path(sys.argv[1])), Path(sys.argv[3])
for _ in range(50):
    with store.lock(sys.argv[2]):
        counter.write_text(str(int(counter.read_text()) + 1))
"""
    counter = tmp_path / "counter"
    counter.write_text("0")
    racers = [spawn(program, store.root, KEY, counter) for _ in range(3)]
    assert [racer.wait(timeout=120) for racer in racers] == [0, 0, 0]
    assert counter.read_text() == "150"


def test_lock_is_released_when_the_block_fails(store: DiskCache) -> None:
    with pytest.raises(ZeroDivisionError), store.lock(KEY):
        raise ZeroDivisionError
    with store.lock(KEY, timeout=0):
        pass


def test_open_cache_follows_the_switches(tmp_path: Path) -> None:
    with override(cache_dir=tmp_path, cache_limit_gb=2):
        store = open_cache()
        assert store is not None
        assert (store.root, store.limit) == (tmp_path, 2e9)
        assert open_cache() is store
    with override(cache=False):
        assert open_cache() is None


def test_fingerprint_is_stable() -> None:
    frame = (2).to_bytes(8, "little") + b"ab"
    assert fingerprint("ab") == fingerprint(b"ab") == hashlib.sha256(frame).hexdigest()
    assert fingerprint() == hashlib.sha256().hexdigest()


@given(st.lists(st.text(), max_size=4), st.lists(st.text(), max_size=4))
def test_fingerprints_are_equal_only_for_equal_parts(one: list[str], two: list[str]) -> None:
    assert (fingerprint(*one) == fingerprint(*two)) == (one == two)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(os.urandom(1 << 20) * 9)
    os.utime(path, (1e9, 1e9))
    return path


def count_digests(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    real, calls = disk_cache_module._digest, []
    monkeypatch.setattr(disk_cache_module, "_digest", lambda path: calls.append(path) or real(path))
    return calls


def test_large_file_is_read_once(
    store: DiskCache, large: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = count_digests(monkeypatch)
    expected = hashlib.sha256(large.read_bytes()).hexdigest()
    assert [fingerprint_file(large, store) for _ in range(3)] == [expected] * 3
    assert len(calls) == 1


def test_changed_file_is_read_again(store: DiskCache, large: Path) -> None:
    first = fingerprint_file(large, store)
    with large.open("r+b") as file:
        file.write(b"\0\0\0\0")
    os.utime(large, (1e9, 1e9))  # same size, same time: the change of the inode gives it away
    second = fingerprint_file(large, store)
    assert second == hashlib.sha256(large.read_bytes()).hexdigest() != first


def test_damaged_memo_is_not_believed(store: DiskCache, large: Path) -> None:
    expected = fingerprint_file(large, store)
    (memo,) = (store.root / "objects").glob("*/*")
    memo.write_text("damaged")
    assert fingerprint_file(large, store) == expected
    assert memo.read_text() == expected


def test_small_or_new_files_leave_no_memo(store: DiskCache, large: Path, tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.write_bytes(b"")
    os.utime(small, (1e9, 1e9))
    assert fingerprint_file(small, store) == hashlib.sha256().hexdigest()
    os.utime(large)
    fingerprint_file(large, store)
    assert not store.root.exists()


def test_memo_is_optional(large: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    expected = hashlib.sha256(large.read_bytes()).hexdigest()
    assert fingerprint_file(large, DiskCache(tmp_path / "cache")) == expected
    assert fingerprint_file(large) == expected
