from __future__ import annotations

import shutil
from typing import Any

import pytest

from tilewright.core.errors import ExecutionError
from tilewright.runtime.cuda import driver, driver_structs
from tilewright.runtime.cuda.driver import Driver, open_driver
from tilewright.runtime.cuda.driver_failures import RUNNING
from tilewright.runtime.cuda.kernel_args import Arguments


def test_a_machine_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LIBRARIES", ("libnothing.so.1",))
    driver._load.cache_clear()
    try:
        with pytest.raises(ExecutionError, match="no NVIDIA driver"):
            Driver()
    finally:
        driver._load.cache_clear()


def test_a_driver_that_is_too_old_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver, "LIBRARIES", ("libc.so.6",))
    driver._load.cache_clear()
    try:
        with pytest.raises(ExecutionError, match="too old"):
            Driver()
    finally:
        driver._load.cache_clear()


class _Library:
    """Functions of a driver that all give one status."""

    def __init__(self, status: int = 0) -> None:
        self.status = status

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> int:
            if name == "cuMemGetInfo_v2":
                arguments[0]._obj.value, arguments[1]._obj.value = 5, 80
                return 0
            return 0 if name.startswith("cuGetError") else self.status

        return call


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> tuple[Driver, _Library]:
    library = _Library()
    monkeypatch.setattr(driver, "_load", lambda: library)
    return Driver(), library


def test_memory_that_is_not_there_is_one_error(gpu: tuple[Driver, _Library]) -> None:
    device, library = gpu
    library.status = 2
    with pytest.raises(ExecutionError, match="allocating 640 bytes: of the GPU's 80 bytes 5 are"):
        device.allocate(640)
    with pytest.raises(ExecutionError, match=r"cuda\.memory"):
        device.launch_graph(1, 0)


def test_kernels_are_named_and_nothing_is_given_back_to_what_is_lost(
    gpu: tuple[Driver, _Library],
) -> None:
    device, library = gpu
    library.status = 1
    with pytest.raises(ExecutionError, match="launching kernel softmax"):
        device.launch(1, (1, 1, 0), Arguments([0]), 0, "softmax")
    with pytest.raises(ExecutionError, match="giving kernel softmax 70000 bytes of shared"):
        device.set_max_dynamic_shared(1, 70000, "softmax")
    with pytest.raises(ExecutionError, match="freeing memory"):
        device.free(4096)
    library.status = 700
    with pytest.raises(ExecutionError, match="TW_GPU_SYNC"):
        device.synchronize(0, RUNNING)
    for release in (device.free, device.destroy_stream, device.unload_module):
        release(4096)
    device.destroy_graph(1, 2)


def test_blocks_that_wait_for_each_other_are_launched_together(
    gpu: tuple[Driver, _Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, _ = gpu
    called: list[str] = []
    monkeypatch.setattr(device, "_call", lambda name, *_, doing: called.append(name))
    device.set_cooperative(7)
    for function, attribute in ((7, driver_structs.TOGETHER), (8, None)):
        prepared = device.prepared(function, (4, 32, 0), Arguments([0]), "steps")
        assert prepared.attribute == attribute
        device.add_node(1, [], prepared)
    node, edges = "cuGraphAddKernelNode", "cuGraphAddDependencies_v2"
    assert called == [node, "cuGraphKernelNodeSetAttribute", edges, node, edges]


def test_the_end_of_the_process_is_no_error(gpu: tuple[Driver, _Library]) -> None:
    device, library = gpu
    library.status = 4
    device.free(4096)


@pytest.mark.gpu
def test_bad_code_is_told_with_what_the_assembler_says() -> None:
    gpu = open_driver()
    gpu.enter()
    with pytest.raises(ExecutionError, match="loading kernel broken") as caught:
        gpu.load_module(b".version 8.0\n.target sm_90\n.nonsense\n\0", "broken")
    assert caught.value.notes
    assert gpu.name()
    assert gpu.capability() >= (7, 0)
    assert shutil.which("nvidia-smi")


def test_only_kernels_that_wait_by_themselves_begin_early(
    gpu: tuple[Driver, _Library], monkeypatch: pytest.MonkeyPatch
) -> None:
    device, _ = gpu
    given: list[bool] = []
    real = driver_structs.edges
    monkeypatch.setattr(driver_structs, "edges", lambda *a: (given.append(a[-1]), real(*a))[1])
    for early in (True, False):
        function = device.function(1, "softmax", early)
        prepared = device.prepared(function, (1, 1, 0), Arguments([0]), "softmax")
        assert prepared.attribute == (driver_structs.EARLY if early else None)
        device.add_node(1, [2], prepared)
    assert given == [True, False]
