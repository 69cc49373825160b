"""Files are recognised by content, whatever they are called."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

import pytest

from tests.for_each import for_each
from tilewright.core import file_format
from tilewright.core.file_format import FileFormat, foreign_format

FORMATS: dict[str, tuple[bytes, FileFormat]] = {
    "tw": (b"TILEWRT3" + bytes(120), file_format.SAVED),
    "gguf": (b"GGUF\x03\0\0\0", file_format.GGUF),
    "safetensors": (struct.pack("<Q", 40) + b'{"w":{"dtype":"F32"', file_format.SAFETENSORS),
    "ort": (b"\x18\0\0\0ORTM\0\0", file_format.ORT),
    "tflite": (b"\x1c\0\0\0TFL3\0\0", file_format.TFLITE),
    "mlir bytecode": (b"ML\xefR\x0dStableHLO_v1.0.0\0", file_format.STABLEHLO),
    "mlir": (b"// jit\nmodule @jit_f attributes {mhlo.n = 1 : i32} {", file_format.STABLEHLO),
    "mlir plain": (b"module {\n  func.func public @main(", file_format.STABLEHLO),
    "loops": (b"func @matmul_add(\n  x0: f32[M, 256],\n", file_format.LOOPS),
    "graph": (b"graph @g(x: f32[2]) {\n", file_format.GRAPH),
    "keras": (b"\x89HDF\r\n\x1a\n", file_format.KERAS),
    "pickle": (b"\x80\x04\x95\x10\0", file_format.PICKLE),
    "openvino": (b'<?xml version="1.0"?>\n<net name="m" version="11">', file_format.OPENVINO),
    "library": (b"\x7fELF\x02\x01", file_format.LIBRARY),
}


@for_each("name", FORMATS)
def test_by_first_bytes(name: str) -> None:
    head, expected = FORMATS[name]
    assert foreign_format(head) is expected


@pytest.mark.parametrize(
    ("member", "expected"),
    [
        ("m/serialized_exported_program.json", file_format.EXPORTED),
        ("m/models/model.json", file_format.EXPORTED),
        ("m/constants.pkl", file_format.TORCHSCRIPT),
        ("archive/data.pkl", file_format.CHECKPOINT),
        ("x.npy", file_format.ARRAYS),
        ("readme.txt", file_format.ARCHIVE),
    ],
)
def test_archives_by_what_is_in_them(tmp_path: Path, member: str, expected: FileFormat) -> None:
    path = tmp_path / "model.onnx"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(member, "")
    assert foreign_format(path.read_bytes(), path) is expected
    assert foreign_format(path.read_bytes()) is file_format.ARCHIVE


@for_each("head", [b"", b"\x08\x0a\x12\x07pytorch", b"junk", b"\0" * 64])
def test_everything_else_may_be_onnx(head: bytes) -> None:
    assert foreign_format(head) is None


def test_a_damaged_archive(tmp_path: Path) -> None:
    path = tmp_path / "m.pt2"
    path.write_bytes(b"PK\x03\x04 and no more")
    assert foreign_format(path.read_bytes(), path) is file_format.ARCHIVE
