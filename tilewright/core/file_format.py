"""What kind of file something is, by its content: models come with any name.

    foreign_format(head, path)     FileFormat("a GGUF file", "it holds weights and no graph; ...")

Files that may be ONNX have no format here: a protobuf message begins with nothing of its own.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import NamedTuple

HEAD = 4096
"""How many bytes of a file decide what it is."""


class FileFormat(NamedTuple):
    """A kind of file: its name for messages, and what to do with such a file."""

    name: str
    help: str


SAVED = FileFormat("a compiled model (.tw)", "load it with tw.load, or compile the .onnx file")
LOOPS = FileFormat(
    "the loops of a kernel (.loops)",
    "give the model, and the folder of such files with --override-loops or overrides=",
)
GRAPH = FileFormat(
    "the text of a graph (.graph)", "give it to the command line, where it must end with .graph"
)
EXPORTED = FileFormat("a program of torch.export (.pt2)", "tw.compile(path) compiles it")
TORCHSCRIPT = FileFormat("a TorchScript archive", "tw.compile(path, inputs=...) compiles it")
CHECKPOINT = FileFormat(
    "a PyTorch checkpoint", "load it into its module and give the module to tw.compile"
)
SAFETENSORS = FileFormat(
    "a safetensors file", "it holds weights and no graph: export the model to ONNX"
)
GGUF = FileFormat("a GGUF file", "it holds weights and no graph: export the model to ONNX")
ORT = FileFormat(
    "a model of ONNX Runtime in its own format (.ort)", "give the .onnx file it was made from"
)
TFLITE = FileFormat("a TensorFlow Lite model", "convert it to ONNX with tf2onnx")
STABLEHLO = FileFormat("an MLIR module, as StableHLO is written", "export the model to ONNX")
KERAS = FileFormat("a Keras model", "convert it to ONNX with tf2onnx")
OPENVINO = FileFormat("a model of OpenVINO", "give the .onnx file it was made from")
LIBRARY = FileFormat("a shared library", "load it from C; give the .onnx or the .tw file")
PICKLE = FileFormat("a pickle of Python", "load it with what made it and export the model to ONNX")
ARRAYS = FileFormat("a file of NumPy arrays", "give it as an input: --input NAME=FILE")
ARCHIVE = FileFormat("a zip archive", "unpack it and give the .onnx file in it")

# What files begin with, at which place.
_MAGIC: tuple[tuple[int, bytes, FileFormat], ...] = (
    (0, b"TILEWRT", SAVED),
    (0, b"GGUF", GGUF),
    (0, b"ML\xefR", STABLEHLO),
    (4, b"ORTM", ORT),
    (4, b"TFL3", TFLITE),
    (0, b"\x89HDF", KERAS),
    (0, b"\x7fELF", LIBRARY),
    (0, b"\x93NUMPY", ARRAYS),
    (0, b"\x80\x02", PICKLE),
    (0, b"\x80\x04", PICKLE),
    (0, b"\x80\x05", PICKLE),
)
# How texts begin, after comments and white space.
_TEXTS: tuple[tuple[re.Pattern[str], FileFormat], ...] = (
    (re.compile(r"func @[\w.]+\("), LOOPS),
    (re.compile(r"graph @[\w.]+\("), GRAPH),
    (re.compile(r"(builtin\.)?module(\s+@|\s+attributes\b|\s*\{)|#\w+ = |func\.func "), STABLEHLO),
    (re.compile(r"<\?xml[^>]*>\s*<net\b|<net\b"), OPENVINO),
)
_COMMENT = re.compile(r"(\s|//[^\n]*\n)*")
# What is in an archive, the first that fits.
_MEMBERS: tuple[tuple[re.Pattern[str], FileFormat], ...] = (
    (
        re.compile(r"(.*/)?(serialized_exported_program\.json|archive_format|models/.*\.json)"),
        EXPORTED,
    ),
    (re.compile(r"(.*/)?constants\.pkl"), TORCHSCRIPT),
    (re.compile(r"(.*/)?data\.pkl"), CHECKPOINT),
    (re.compile(r"model\.weights\.h5"), KERAS),
    (re.compile(r".*\.npy"), ARRAYS),
)


def foreign_format(head: bytes, path: Path | None = None) -> FileFormat | None:
    """What a file is that is certainly no ONNX model, by its first `HEAD` bytes.

    An archive is also looked into, where the `path` is given.
    """
    for place, magic, found in _MAGIC:
        if head[place : place + len(magic)] == magic:
            return found
    if head[8:9] == b"{" and 0 < int.from_bytes(head[:8], "little") < 1 << 40:
        return SAFETENSORS
    if head.startswith(b"PK\x03\x04"):
        return _archive(path)
    return _text(head)


def _text(head: bytes) -> FileFormat | None:
    if b"\0" in head:
        return None
    text = head.decode("utf-8", "replace")
    start = _COMMENT.match(text)
    text = text[start.end() if start else 0 :]
    return next((found for pattern, found in _TEXTS if pattern.match(text)), None)


def _archive(path: Path | None) -> FileFormat:
    if path is None:
        return ARCHIVE
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return ARCHIVE
    fits = (found for pattern, found in _MEMBERS if any(map(pattern.fullmatch, names)))
    return next(fits, ARCHIVE)
