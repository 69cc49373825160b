from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tilewright.core.errors import ExecutionError
from tilewright.runtime.cuda.driver import open_driver
from tilewright.runtime.cuda.driver_failures import RUNNING, DriverFailures
from tilewright.runtime.cuda.kernel_args import Arguments


class _Library:
    """A driver that knows no names of statuses."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: 0


def test_a_kernel_that_was_waited_for_is_named_and_remembered() -> None:
    failures = DriverFailures(_Library())
    failures.require_context()
    with pytest.raises(ExecutionError, match="kernel softmax failed: status 700"):
        failures.check(700, "kernel softmax ran")
    for later in (lambda: failures.check(700, "copying"), failures.require_context):
        with pytest.raises(
            ExecutionError, match=r"cannot be used any more.*kernel softmax"
        ) as told:
            later()
        assert told.value.code == "cuda.lost"
        assert "start the process again" in told.value.help


def test_what_was_launched_last_is_told_where_the_kernel_is_not_known() -> None:
    failures = DriverFailures(_Library())
    failures.launched = ("conv", "softmax", "conv")
    with pytest.raises(ExecutionError, match="a kernel failed, as was seen while") as told:
        failures.check(700, RUNNING)
    assert told.value.notes == ("launched last: conv, softmax",)
    assert "TW_GPU_SYNC=1" in told.value.help
    with pytest.raises(ExecutionError, match="launched last: conv, softmax"):
        failures.require_context()


def test_other_failures_leave_the_context() -> None:
    failures = DriverFailures(_Library())
    failures.check(0, "copying")
    with pytest.raises(ExecutionError, match="failed while copying: status 1"):
        failures.check(1, "copying")
    failures.require_context()


# A kernel that fails takes the context of its process with it.
_FAILS = """
import torch
import tilewright as tw
from tilewright.core.errors import ExecutionError

module = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.Softmax(-1)).eval()
model = tw.compile(module, inputs=(torch.zeros(3, 16),), target="cuda")
fine = tw.compile(module, inputs=(torch.zeros(3, 16),), target="cuda")
x = torch.zeros(3, 16, device="cuda")
fine(x)
model(x)
model._program.loaded.weights = 1 << 50  # where no memory is
model._torch.close()
model._program.contexts.clear()

def settled():
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        print("torch was told, too")

for call in (lambda: (model(x), settled(), model(x)), lambda: fine(x), fine.check, lambda: fine(x)):
    try:
        call()
        print("no error")
    except ExecutionError as error:
        print(str(error).replace(chr(10), " "))
model.close()
fine.close()
print("kernels", ", ".join(k["name"] for k in model.manifest["kernels"]))
"""


@pytest.mark.gpu
@pytest.mark.parametrize("waits", [False, True])
def test_an_illegal_address_is_told_with_its_kernel_and_remembered(waits: bool) -> None:
    environment = {**os.environ, "TW_GPU_SYNC": str(int(waits))}
    command = [sys.executable, "-c", _FAILS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    *errors, names = [line for line in done.stdout.splitlines() if not line.startswith("torch")]
    assert ("torch was told" in done.stdout) == (not waits)
    assert len(errors) == 4, done.stdout + done.stderr
    first = names.removeprefix("kernels ").split(", ")[0]
    assert errors[0].startswith("ExecutionError[cuda.kernel]")
    assert "illegal" in errors[0]
    for error in errors[1:]:
        assert error.startswith("ExecutionError[cuda.lost]")
    for error in errors:
        assert f"kernel {first} failed" in error if waits else "TW_GPU_SYNC=1" in error
        assert waits or f"launched last: {first}" in error


@pytest.mark.gpu
def test_refused_launches_are_told_with_their_kernel() -> None:
    gpu = open_driver()
    gpu.enter()
    code = b".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry greedy() { ret; }\n\0"
    module = gpu.load_module(code, "greedy")
    function, stream = gpu.function(module, "greedy"), gpu.create_stream()
    with pytest.raises(ExecutionError, match="giving kernel greedy 1048576 bytes of shared"):
        gpu.set_max_dynamic_shared(function, 1 << 20, "greedy")
    for shape in ((1, 4096, 0), (1, 32, 1 << 20)):
        with pytest.raises(ExecutionError, match="launching kernel greedy"):
            gpu.launch(function, shape, Arguments([0]), stream, "greedy")
    gpu.launch(function, (1, 32, 0), Arguments([0]), stream, "greedy")
    gpu.synchronize(stream)
    gpu.destroy_stream(stream)
    gpu.unload_module(module)
