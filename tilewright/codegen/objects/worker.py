"""The other end of an `ObjectQueue`: a process that turns modules into object code, one by one.

It reads frames on its standard input and answers each on its standard output; a frame is a flag, a
length and that many bytes. The first one describes the target, every other is a module's text with
the flag "optimise". The answer's flag says whether the bytes are an object file. The end of the
input, which comes with the end of the other process too, ends this one.
"""

from __future__ import annotations

import json
import signal
import struct
import sys
from typing import IO

from tilewright.codegen.objects.compile import compile_object
from tilewright.core.errors import CodegenError
from tilewright.target.target import Target, read_target, write_target

_HEADER = struct.Struct("<?Q")
# What the process runs: where its parent finds packages, behind the standard library.
PROGRAM = (
    "import sys; sys.path += sys.argv[1:]; "
    "from tilewright.codegen.objects.worker import main; main()"
)


def write_frame(sink: IO[bytes], flag: bool, payload: bytes) -> None:
    """Send one frame."""
    sink.write(_HEADER.pack(flag, len(payload)))
    sink.write(payload)
    sink.flush()


def read_frame(source: IO[bytes]) -> tuple[bool, bytes] | None:
    """Receive one frame; `None` where the other end has gone."""
    header = source.read(_HEADER.size)
    if len(header) < _HEADER.size:
        return None
    flag, size = _HEADER.unpack(header)
    payload = source.read(size)
    return (flag, payload) if len(payload) == size else None


def encode_target(target: Target) -> bytes:
    """A target as the first frame has it."""
    return json.dumps(write_target(target)).encode()


def decode_target(text: bytes) -> Target:
    """The target in a first frame."""
    return read_target(json.loads(text))


def serve(source: IO[bytes], sink: IO[bytes]) -> None:
    """Answer frames until there are no more."""
    first = read_frame(source)
    if first is None:
        return
    target = decode_target(first[1])
    while (request := read_frame(source)) is not None:
        optimized, text = request
        try:
            write_frame(sink, True, compile_object(text.decode(), target, optimized))
        except CodegenError:
            # The other process meets the same error and can say where.
            write_frame(sink, False, b"")


def main() -> None:
    """Serve the process that has started this one; an interrupt is for that one to handle."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.stdin.buffer, sys.stdout.buffer)
