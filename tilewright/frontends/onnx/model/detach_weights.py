"""Detach the weights from a serialized model, so that parsing does not copy them.

An ONNX file is a protobuf message: fields, each a tag (number and kind) and a value. The bytes of
the initializers are nearly all of it. `strip` walks the fields

    ModelProto.graph (7) → GraphProto.initializer (5) → TensorProto.raw_data (9)

and gives the message without long `raw_data`, and those as views of the original buffer: the file
stays memory-mapped and a weight is read when it is used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.core.errors import FrontendError

GRAPH, INITIALIZER, RAW_DATA = 7, 5, 9
# Shorter data is not worth a view: it stays in the message.
MIN_VIEW_BYTES = 1024

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_FIXED_SIZES = {_FIXED64: 8, _FIXED32: 4}


@dataclass
class Stripped:
    """The message without its weights, and the bytes of each weight by initializer number."""

    message: bytes
    raw: dict[int, memoryview] = field(default_factory=dict)


def strip(data: memoryview) -> Stripped:
    """Cut the long `raw_data` of the initializers out of a serialized ModelProto."""
    raw: dict[int, memoryview] = {}
    count = 0
    model: list[bytes | memoryview] = []
    for number, payload, whole in _fields(data):
        if number != GRAPH or payload is None:
            model.append(whole)
            continue
        graph: list[bytes | memoryview] = []
        for inner, tensor, field_bytes in _fields(payload):
            if inner != INITIALIZER or tensor is None:
                graph.append(field_bytes)
                continue
            rest, cut = _cut_raw(tensor)
            if cut is not None:
                raw[count] = cut
            graph.append(_message(INITIALIZER, rest))
            count += 1
        model.append(_message(GRAPH, b"".join(graph)))
    return Stripped(b"".join(model), raw)


def _cut_raw(tensor: memoryview) -> tuple[bytes, memoryview | None]:
    """A TensorProto without its `raw_data` if that is long, and the `raw_data`."""
    cut = None
    rest: list[memoryview] = []
    for number, payload, whole in _fields(tensor):
        if number == RAW_DATA and payload is not None and len(payload) > MIN_VIEW_BYTES:
            cut = payload
        else:
            rest.append(whole)
    return b"".join(rest), cut


def _fields(data: memoryview) -> Iterator[tuple[int, memoryview | None, memoryview]]:
    """Each field of a message: its number, its bytes if it is of that kind, and all of it."""
    at, end = 0, len(data)
    while at < end:
        start = at
        tag, at = (data[at], at + 1) if data[at] < 0x80 else _varint(data, at)
        kind, payload = tag & 7, None
        if kind == _BYTES:  # nearly all fields
            short = at < end and data[at] < 0x80
            length, at = (data[at], at + 1) if short else _varint(data, at)
            payload = data[at : at + length]
            at += length
        elif kind == _VARINT:
            _, at = _varint(data, at)
        elif kind in _FIXED_SIZES:
            at += _FIXED_SIZES[kind]
        else:
            raise _damaged(f"a field of kind {kind}")
        if at > end:
            raise _damaged("a field that goes past the end")
        yield tag >> 3, payload, data[start:at]


def _varint(data: memoryview, at: int) -> tuple[int, int]:
    """A number in base 128, least part first, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise _damaged("a number without an end")


def _message(number: int, payload: bytes) -> bytes:
    return bytes([number << 3 | _BYTES]) + _encode(len(payload)) + payload


def _encode(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _damaged(what: str) -> FrontendError:
    return FrontendError(
        "onnx.damaged",
        f"this is not an ONNX model, or it is truncated: it has {what}",
        help="check the file's size, or download it again; files kept in Git LFS may be pointers",
    )
