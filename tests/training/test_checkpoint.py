from __future__ import annotations

import json
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from tilewright.core.errors import FrontendError
from tilewright.training.checkpoint import read_checkpoint, write_checkpoint

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "none": np.zeros((0, 3)),
    "number": np.array(7),
    "turned": np.arange(6, dtype=np.int16).reshape(2, 3).T,
    "truth": np.array([True, False]),
    "narrow": np.array([1.5, -2], ml_dtypes.bfloat16),
}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = write_checkpoint(tmp_path / "c.safetensors", ARRAYS, {"steps": "3"})
    arrays, texts = read_checkpoint(path)
    assert texts == {"steps": "3"}
    assert list(arrays) == list(ARRAYS)
    for name, array in arrays.items():
        assert array.dtype == ARRAYS[name].dtype
        np.testing.assert_array_equal(array, ARRAYS[name])
        assert array.flags.writeable
    assert [p.name for p in tmp_path.iterdir()] == ["c.safetensors"]


def test_safetensors_reads_it_and_writes_such(tmp_path: Path) -> None:
    plain = {name: array for name, array in ARRAYS.items() if name != "narrow"}
    found = load_file(write_checkpoint(tmp_path / "c.safetensors", plain, {}))
    for name, array in plain.items():
        np.testing.assert_array_equal(found[name], array)
    save_file({"a": ARRAYS["a"]}, tmp_path / "d.safetensors", {"by": "them"})
    arrays, texts = read_checkpoint(tmp_path / "d.safetensors")
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])
    assert texts == {"by": "them"}


def _file(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK\x03\x04",
        (10**6).to_bytes(8, "little") + b"{}",
        (2).to_bytes(8, "little") + b"{{",
        _file([]),
        _file({"__metadata__": 3}),
        _file({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}, b"1234"),
        _file({"a": {"dtype": "F32", "shape": [3], "data_offsets": [0, 8]}}, b"12345678"),
        _file({"a": {"dtype": "F8", "shape": [1], "data_offsets": [0, 1]}}, b"1"),
        _file({"a": {"dtype": "F32", "shape": [0], "data_offsets": [4, 0]}}, b"1234"),
        _file({"a": 3}),
    ],
)
def test_what_is_no_checkpoint(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "c.safetensors"
    path.write_bytes(content)
    with pytest.raises(FrontendError, match=r"checkpoint\.format"):
        read_checkpoint(path)
