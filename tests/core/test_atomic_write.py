from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tilewright.core.atomic_write import TEMPORARY, atomic_write
from tilewright.core.errors import ConfigError


def failing(error: BaseException):
    def write(temporary: Path) -> None:
        temporary.write_bytes(b"half")
        raise error

    return write


@pytest.fixture
def target(tmp_path: Path) -> Path:
    path = tmp_path / "model.tw"
    path.write_text("old")
    return path


@pytest.mark.parametrize("content", [b"", b"x", b"\0" * 100_000])
def test_writes_new_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "new"
    assert atomic_write(path, lambda temporary: temporary.write_bytes(content)) == path
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["new"]


def test_old_content_is_there_until_the_end(target: Path) -> None:
    def write(temporary: Path) -> None:
        assert temporary.parent == target.parent
        assert temporary.name.startswith(TEMPORARY)
        temporary.write_text("new")
        assert target.read_text() == "old"

    atomic_write(str(target), write)
    assert target.read_text() == "new"


def test_writer_may_replace_the_temporary_file_itself(target: Path) -> None:
    def write(temporary: Path) -> None:  # as linkers do
        temporary.unlink()
        temporary.write_text("linked")

    atomic_write(target, write)
    assert target.read_text() == "linked"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "file.disk-full"),
        (OSError(errno.EDQUOT, "Disk quota exceeded"), "file.disk-full"),
        (OSError(errno.EROFS, "Read-only file system"), "file.unwritable"),
        (PermissionError(errno.EACCES, "Permission denied"), "file.unwritable"),
        (OSError(errno.EIO, "Input/output error"), "file.unwritable"),
    ],
)
def test_disk_trouble_is_a_clear_error(target: Path, error: OSError, code: str) -> None:
    with pytest.raises(ConfigError) as caught:
        atomic_write(target, failing(error))
    assert caught.value.code == code
    assert str(target) in caught.value.message
    assert caught.value.help
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize(
    "error",
    [ValueError("mine"), KeyboardInterrupt(), PermissionError(errno.EACCES, "no", "/other/file")],
)
def test_other_errors_of_the_writer_pass_unchanged(target: Path, error: BaseException) -> None:
    with pytest.raises(type(error)) as caught:
        atomic_write(target, failing(error))
    assert caught.value is error
    assert os.listdir(target.parent) == [target.name]


@pytest.mark.parametrize("step", ["open", "fsync", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES])
def test_each_step_may_fail(
    target: Path, step: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object, **options: object) -> int:
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(ConfigError) as caught:
            atomic_write(target, lambda temporary: None, area="cache")
    expected = "cache.disk-full" if number == errno.ENOSPC else "cache.unwritable"
    assert caught.value.code == expected
    assert target.read_text() == "old"
    assert os.listdir(target.parent) == [target.name]


def test_missing_directory(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        atomic_write(tmp_path / "no" / "such" / "file", lambda temporary: None)
    assert caught.value.code == "file.unwritable"
    assert "exists" in caught.value.help


def test_directory_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Is a directory"):
        atomic_write(tmp_path, lambda temporary: None)


def test_permissions_of_a_replaced_file_stay(target: Path) -> None:
    target.chmod(0o640)
    atomic_write(target, lambda temporary: temporary.write_text("new"))
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_permissions_of_a_new_file_follow_the_umask(tmp_path: Path) -> None:
    program = """
import os, sys
from tilewright.core.atomic_write import atomic_write
os.umask(0o027)
atomic_write(sys.argv[1], lambda temporary: None)
"""
    subprocess.run([sys.executable, "-c", program, tmp_path / "new"], check=True)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640


def test_link_is_followed(target: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(target)
    atomic_write(link, lambda temporary: temporary.write_text("new"))
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_device_is_written_and_not_replaced() -> None:
    atomic_write("/dev/null", lambda temporary: temporary.write_text("gone"))
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_long_name(tmp_path: Path) -> None:
    path = tmp_path / ("n" * 250)
    atomic_write(path, lambda temporary: temporary.write_text("x"))
    assert path.read_text() == "x"
