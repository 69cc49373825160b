"""The `.tw` file: a compiled model in one file, its weights ready to be mapped into memory.

    0     "TILEWRT3", the SHA-256 of what follows up to the weights (header, manifest, code)
    40    five little-endian u64: manifest size, code offset and size, weights offset and size
    128   the manifest, JSON; then from a multiple of 4096 on each
    ...   the code: object files end to end, named in the manifest's "objects"
    ...   the weights, unchecked but for their length: reading them all would make loading slow

A writer needs no more memory than one tensor, a reader maps the weights and reads none of them.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from tilewright.core.arguments import path_argument
from tilewright.core.atomic_write import atomic_write
from tilewright.core.errors import ExecutionError
from tilewright.core.file_format import HEAD, foreign_format
from tilewright.runtime.host_memory import address

FORMAT_VERSION = 4
WEIGHT_ALIGNMENT = 64
"""Every tensor of the weights begins at a multiple of this."""

_MAGIC = b"TILEWRT"
_PREFIX = struct.Struct("<7sc32s")
_SIZES = struct.Struct("<5Q")
_HEADER_SIZE = 128  # the prefix, the sizes, and room for more
_PAGE = 4096  # code and weights are mapped
_RECOMPILE = "save the model again, or compile it again with this version of tilewright"

Buffer = bytes | bytearray | np.ndarray
WeightItems = Iterable[tuple[int, Buffer]]
"""Tensors with their offsets in the weights, in rising order; may be made one by one."""


@dataclass(frozen=True, eq=False)
class Container:
    """A compiled model: what it is, its object files by name, its weights as bytes.

    `path` and `weights_offset` say where the weights lie on disk, if they do.
    """

    manifest: dict[str, Any]
    objects: dict[str, bytes]
    weights: np.ndarray
    path: Path | None = None
    weights_offset: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        """The pickle has all of it; where it is unpickled, the weights are page-aligned again."""
        return _unpickled, (self.manifest, self.objects, np.asarray(self.weights))


def assemble_weights(items: WeightItems, size: int) -> np.ndarray:
    """The weights in memory, page-aligned: for a model that runs without being saved first."""
    whole = np.zeros(size + _PAGE, np.uint8)
    weights = whole[-address(whole) % _PAGE :][:size]
    for offset, buffer in items:
        data = _bytes(buffer)
        weights[offset : offset + len(data)] = np.frombuffer(data, np.uint8)
    return weights


def _unpickled(
    manifest: dict[str, Any], objects: dict[str, bytes], weights: np.ndarray
) -> Container:
    return Container(manifest, objects, assemble_weights([(0, weights)], weights.nbytes))


def write_container(
    path: str | os.PathLike[str],
    manifest: Mapping[str, Any],
    objects: Mapping[str, bytes],
    weights: WeightItems,
) -> Path:
    """Write a model to `path`, whole or not at all; `weights` are streamed."""

    def write(temporary: Path) -> None:
        fill_container(temporary, manifest, objects, weights)

    return atomic_write(path_argument("path", path), write, area="container")


def fill_container(
    path: Path, manifest: Mapping[str, Any], objects: Mapping[str, bytes], weights: WeightItems
) -> None:
    """Write a model into a file that its caller will put in its place when it is whole."""
    with open(path, "wb") as file:
        _write(file, manifest, objects, weights)


def read_container(path: str | os.PathLike[str]) -> Container:
    """Read the model at `path`; its weights are mapped, not read."""
    path = path_argument("path", path)
    try:
        with open(path, "rb") as file:
            return _read(file, path)
    except OSError as error:
        raise ExecutionError(
            "container.unreadable",
            f"cannot read {path}: {error.strerror or error}",
            help="give the path of a file written by model.save()",
        ) from error


def _write(
    file: BinaryIO, manifest: Mapping[str, Any], objects: Mapping[str, bytes], weights: WeightItems
) -> None:
    table = [{"name": name, "size": len(data)} for name, data in objects.items()]
    text = json.dumps({**manifest, "format": FORMAT_VERSION, "objects": table}).encode()
    code_offset = _align(_HEADER_SIZE + len(text))
    code_size = sum(len(data) for data in objects.values())
    weights_offset = _align(code_offset + code_size)
    file.write(bytes(_HEADER_SIZE) + text)
    file.write(bytes(code_offset - file.tell()))
    for data in objects.values():
        file.write(data)
    file.write(bytes(weights_offset - file.tell()))
    weights_size = _write_weights(file, weights_offset, weights)
    sizes = _SIZES.pack(len(text), code_offset, code_size, weights_offset, weights_size)
    digest = _digest(sizes, text, objects.values())
    file.seek(0)
    file.write(_PREFIX.pack(_MAGIC, str(FORMAT_VERSION).encode(), digest) + sizes)


def _write_weights(file: BinaryIO, start: int, weights: WeightItems) -> int:
    """Stream the tensors, leaving holes of zeros between them; the size of all."""
    size = 0
    for offset, buffer in weights:
        assert offset >= size, "weights overlap or come out of order"
        assert offset % WEIGHT_ALIGNMENT == 0, "weights are not aligned"
        data = _bytes(buffer)
        if len(data) > 0:
            file.seek(start + offset)
            file.write(data)
            size = offset + len(data)
    return size


def _read(file: BinaryIO, path: Path) -> Container:
    start = file.read(HEAD)
    _check_magic(start, path)
    head = start[:_HEADER_SIZE]
    file.seek(_HEADER_SIZE)
    _, _, digest = _PREFIX.unpack_from(head)
    sizes = head[_PREFIX.size : _PREFIX.size + _SIZES.size]
    text_size, code_offset, code_size, weights_offset, weights_size = _SIZES.unpack(sizes)
    actual = os.fstat(file.fileno()).st_size
    if actual < weights_offset + weights_size:
        raise _truncated(path, f"has {actual} bytes, not {weights_offset + weights_size}")
    # a damaged header must not make us read more than there is
    if _HEADER_SIZE + text_size > code_offset or code_offset + code_size > weights_offset:
        raise _corrupt(path)
    text = file.read(text_size)
    file.seek(code_offset)
    code = file.read(code_size)
    if _digest(sizes, text, [code]) != digest:
        raise _corrupt(path)
    manifest = json.loads(text)
    objects = _split_code(code, manifest.pop("objects"))
    weights = _map(file, weights_offset, weights_size)
    return Container(manifest, objects, weights, path.absolute(), weights_offset)


def _check_magic(head: bytes, path: Path) -> None:
    if len(head) < len(_MAGIC) + 1 or not head.startswith(_MAGIC):
        found = foreign_format(head, path)
        raise ExecutionError(
            "container.magic",
            f"{path} is not a compiled model" + (f", but {found.name}" if found else ""),
            help="give a file written by model.save(); compile an ONNX model with tw.compile()",
        )
    version = head[len(_MAGIC) : len(_MAGIC) + 1].decode("latin-1")
    if version != str(FORMAT_VERSION):
        raise ExecutionError(
            "container.version",
            f"{path} has format version {version}, this tilewright reads {FORMAT_VERSION}",
            help=_RECOMPILE,
        )
    if len(head) < _HEADER_SIZE:
        raise _truncated(path, "ends within its header")


def _truncated(path: Path, what: str) -> ExecutionError:
    return ExecutionError(
        "container.truncated",
        f"{path} is not whole: it {what}",
        help=f"copy it again, or {_RECOMPILE}",
    )


def _corrupt(path: Path) -> ExecutionError:
    return ExecutionError(
        "container.corrupt", f"{path} is damaged: its checksum is wrong", help=_RECOMPILE
    )


def _split_code(code: bytes, table: list[dict[str, Any]]) -> dict[str, bytes]:
    objects, start = {}, 0
    for entry in table:
        objects[entry["name"]] = code[start : start + entry["size"]]
        start += entry["size"]
    return objects


def _map(file: BinaryIO, offset: int, size: int) -> np.ndarray:
    if size == 0:  # nothing cannot be mapped
        return np.empty(0, np.uint8)
    return np.memmap(file, np.uint8, mode="r", offset=offset, shape=(size,))


def _digest(sizes: bytes, text: bytes, code: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256(sizes)
    digest.update(text)
    for data in code:
        digest.update(data)
    return digest.digest()


def _bytes(buffer: Buffer) -> memoryview:
    if isinstance(buffer, np.ndarray):
        # not every element type (bf16) knows the buffer protocol, its bytes do
        return np.ascontiguousarray(buffer).reshape(-1).view(np.uint8).data
    return memoryview(buffer)


def _align(offset: int) -> int:
    return -(-offset // _PAGE) * _PAGE
