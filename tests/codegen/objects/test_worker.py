from __future__ import annotations

import base64
import subprocess

import pytest

from tests.for_each import for_each
from tilewright.codegen.objects.compile import compile_object
from tilewright.codegen.objects.worker import (
    MODULE,
    compile_module,
    decode_target,
    encode_target,
)
from tilewright.core.errors import CodegenError
from tilewright.core.worker.process import WorkerProcess
from tilewright.core.worker.python_command import python_command
from tilewright.target.host import host
from tilewright.target.registry import CPUS

DOUBLE = "define float @f(float %x) {\n  %y = fadd float %x, %x\n  ret float %y\n}\n"
WRONG = "define i32 @f() { ret i64 0 }"
COMMAND = python_command(MODULE)


def request(text: str, optimized: bool = True) -> dict[str, object]:
    return {"target": encode_target(host()), "text": text, "optimized": optimized}


@for_each("name", CPUS)
def test_targets_come_out_as_they_went_in(name: str) -> None:
    assert decode_target(encode_target(CPUS[name])) == CPUS[name]


@for_each("optimized", [True, False])
def test_a_module_is_compiled(optimized: bool) -> None:
    code = base64.b64decode(compile_module(request(DOUBLE, optimized))["code"])
    assert code == compile_object(DOUBLE, host(), optimized)
    with pytest.raises(CodegenError):
        compile_module(request(WRONG, optimized))


def test_the_process_answers_every_request() -> None:
    with WorkerProcess(COMMAND) as worker:
        assert worker.ask(request(WRONG), 60).kind == "refused"
        code = worker.ask(request(DOUBLE), 60).reply["code"]
    assert base64.b64decode(code) == compile_object(DOUBLE, host())


def test_the_process_ends_with_its_input() -> None:
    process = subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"{}\n"
    assert process.returncode == 0
