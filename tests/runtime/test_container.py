from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from tilewright.core.errors import ConfigError, ExecutionError
from tilewright.runtime.container import (
    FORMAT_VERSION,
    assemble_weights,
    read_container,
    write_container,
)

OBJECTS = {"model": b"\x7fELF model", "threads": b"\x7fELF threads"}
MANIFEST = {"symbols": ["N"], "explain": "päss"}
TENSORS = [
    (0, np.arange(5, dtype=np.float32)),
    (64, b"bytes"),
    (128, np.empty((0, 3), np.int64)),
    (8192, np.arange(6, dtype=np.int64).reshape(2, 3).T),
    (16384, np.ones(3, ml_dtypes.bfloat16)),
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_container(tmp_path / "model.tw", MANIFEST, OBJECTS, TENSORS)


def test_round_trip(path: Path) -> None:
    found = read_container(path)
    assert found.manifest == {**MANIFEST, "format": FORMAT_VERSION}
    assert found.objects == OBJECTS
    assert len(found.weights) == 16384 + 6
    for offset, tensor in TENSORS:
        data = tensor if isinstance(tensor, bytes) else tensor.tobytes()
        assert found.weights[offset : offset + len(data)].tobytes() == data
    assert not found.weights[20:64].any()
    assert found.weights_offset % 4096 == 0


def test_weights_are_mapped_and_read_only(path: Path) -> None:
    weights = read_container(path).weights
    assert isinstance(weights, np.memmap)
    assert not weights.flags.writeable
    assert weights.ctypes.data % 4096 == 0


def test_no_weights_and_no_code(tmp_path: Path) -> None:
    path = write_container(tmp_path / "model.tw", {}, {}, [])
    found = read_container(path)
    assert (found.objects, len(found.weights)) == ({}, 0)


def test_assembled_weights_equal_written_ones(path: Path) -> None:
    assembled = assemble_weights(TENSORS, 16384 + 6)
    assert assembled.ctypes.data % 4096 == 0
    np.testing.assert_array_equal(assembled, read_container(path).weights)


def test_tensors_are_taken_one_at_a_time(tmp_path: Path) -> None:
    alive: list[int] = []

    def tensors() -> Iterator[tuple[int, bytes]]:
        for index in range(4):
            alive.append(index)
            yield index * 64, bytes([index]) * 64

    write_container(tmp_path / "model.tw", {}, {}, tensors())
    assert alive == [0, 1, 2, 3]


def test_a_failing_source_of_weights_leaves_no_file(tmp_path: Path) -> None:
    def tensors() -> Iterator[tuple[int, bytes]]:
        yield 0, b"something"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(ConfigError, match="no space left") as caught:
        write_container(tmp_path / "model.tw", {}, {}, tensors())
    assert caught.value.code == "container.disk-full"
    assert list(tmp_path.iterdir()) == []


def test_a_failed_save_keeps_the_old_file(path: Path) -> None:
    before = path.read_bytes()
    with pytest.raises(AssertionError, match="overlap"):
        write_container(path, {}, {}, [(64, b"later"), (0, b"earlier")])
    assert path.read_bytes() == before


@pytest.mark.parametrize("size", [8, 50, 127])
def test_truncated_header(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])
    assert code_of(path) == "container.truncated"


@pytest.mark.parametrize("missing", [1, 1000, 10000, 20000])
def test_truncated_file(path: Path, missing: int) -> None:
    path.write_bytes(path.read_bytes()[:-missing])
    assert code_of(path) == "container.truncated"


@pytest.mark.parametrize("position", [10, 140, 4097], ids=["digest", "manifest", "code"])
def test_damaged_file(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)
    assert code_of(path) == "container.corrupt"


@pytest.mark.parametrize("position", range(40, 80))
def test_damaged_sizes_never_escape(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0xFF
    path.write_bytes(data)
    assert code_of(path) in ("container.corrupt", "container.truncated")


def test_foreign_files(path: Path) -> None:
    data = path.read_bytes()
    for version in (b"2", b"9"):
        path.write_bytes(b"TILEWRT" + version + data[8:])
        assert code_of(path) == "container.version"
    for other in (b"", b"TILE", b"\x08\x07onnx" * 100):
        path.write_bytes(other)
        assert code_of(path) == "container.magic"


def test_missing_file(tmp_path: Path) -> None:
    assert code_of(tmp_path / "none.tw") == "container.unreadable"
    assert code_of(tmp_path) == "container.unreadable"


def code_of(path: Path) -> str:
    with pytest.raises(ExecutionError) as caught:
        read_container(path)
    assert caught.value.help
    assert str(path) in caught.value.message
    return caught.value.code
