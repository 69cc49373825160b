from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

import tilewright
from tilewright.codegen.objects.compile import compile_object
from tilewright.codegen.objects.worker import (
    PROGRAM,
    decode_target,
    encode_target,
    read_frame,
    serve,
    write_frame,
)
from tilewright.target.host import host
from tilewright.target.registry import CPUS

DOUBLE = "define float @f(float %x) {\n  %y = fadd float %x, %x\n  ret float %y\n}\n"
WRONG = "define i32 @f() { ret i64 0 }"


@pytest.mark.parametrize("payload", [b"", b"x", b"\x00\xff" * 40000])
@pytest.mark.parametrize("flag", [True, False])
def test_frames_come_out_as_they_went_in(flag: bool, payload: bytes) -> None:
    pipe = io.BytesIO()
    write_frame(pipe, flag, payload)
    write_frame(pipe, True, b"next")
    pipe.seek(0)
    assert read_frame(pipe) == (flag, payload)
    assert read_frame(pipe) == (True, b"next")
    assert read_frame(pipe) is None


@pytest.mark.parametrize("kept", [0, 3, 9, 11])
def test_a_frame_cut_short_is_no_frame(kept: int) -> None:
    pipe = io.BytesIO()
    write_frame(pipe, True, b"text")
    assert read_frame(io.BytesIO(pipe.getvalue()[:kept])) is None


@pytest.mark.parametrize("name", CPUS)
def test_targets_come_out_as_they_went_in(name: str) -> None:
    assert decode_target(encode_target(CPUS[name])) == CPUS[name]


def test_every_module_is_answered() -> None:
    source, sink = io.BytesIO(), io.BytesIO()
    write_frame(source, True, encode_target(host()))
    for optimized, text in ((True, DOUBLE), (True, WRONG), (False, DOUBLE)):
        write_frame(source, optimized, text.encode())
    source.seek(0)
    serve(source, sink)
    sink.seek(0)
    assert read_frame(sink) == (True, compile_object(DOUBLE, host()))
    assert read_frame(sink) == (False, b"")
    assert read_frame(sink) == (True, compile_object(DOUBLE, host(), optimized=False))
    assert read_frame(sink) is None


def test_nothing_asked_is_nothing_done() -> None:
    sink = io.BytesIO()
    serve(io.BytesIO(), sink)
    assert sink.getvalue() == b""


def test_the_process_ends_with_its_input() -> None:
    paths = [str(Path(tilewright.__file__).parents[1]), *sys.path]
    request = io.BytesIO()
    write_frame(request, True, encode_target(host()))
    write_frame(request, True, DOUBLE.encode())
    command = [sys.executable, "-I", "-S", "-c", PROGRAM, *paths]
    done = subprocess.run(
        command, input=request.getvalue(), capture_output=True, timeout=60, check=True
    )
    assert read_frame(io.BytesIO(done.stdout)) == (True, compile_object(DOUBLE, host()))
    assert done.stderr == b""
