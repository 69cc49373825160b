from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from tests.frontends.onnx.segments.segmented_models import AXES
from tests.models import convnet, mlp, transformer
from tilewright.core.errors import TuneError
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.driver.tuning.extract_tasks import extract_tasks
from tilewright.ir.types import TYPICAL_SIZE
from tilewright.schedule.trace import parse_trace
from tilewright.target.host import host
from tilewright.target.registry import CPUS
from tilewright.tune.workload import parse_workload, workload_hash, workload_text

X86 = CPUS["x86-64-v3"]


def test_every_kernel_call_belongs_to_one_task() -> None:
    for model in (transformer(2, 6), convnet(1)):
        found = extract_tasks(model, host())
        assert not found.skipped
        calls = len(lower(model, make_options()).steps)
        assert sum(task.about.weight for task in found.tasks) == calls
        assert len({task.workload for task in found.tasks}) == len(found.tasks)
        assert all(task.about.flops >= 1 for task in found.tasks)


def test_equal_kernels_are_one_task() -> None:
    found = extract_tasks(transformer(2, 6), host())
    assert len(found.tasks) < sum(task.about.weight for task in found.tasks)


def test_a_task_knows_its_workload_and_its_schedule() -> None:
    build = lower(mlp(4), make_options(target="x86-64-v3"))
    kernels = {step.kernel.name: step.kernel for step in build.steps}
    for task in extract_tasks(mlp(4), X86).tasks:
        kernel, scheduled = kernels[task.about.name], task.scheduled
        assert (scheduled.builtin, task.about.kind) == (kernel.trace, kernel.rule)
        func, constants = parse_workload(scheduled.text)
        assert workload_hash(workload_text(func, constants)) == task.workload
        replayed = parse_trace(scheduled.builtin).replay(scheduled.func)
        assert replayed == kernel.scheduled.func


def test_symbolic_sizes_have_a_value_only_while_measuring() -> None:
    (typical, *_), (given, *_) = (
        extract_tasks(mlp("N"), host(), sizes=sizes).tasks for sizes in ({}, {"N": 5, "other": 2})
    )
    assert (typical.sizes, given.sizes) == ({"N": TYPICAL_SIZE}, {"N": 5})
    assert given.inputs["x"].shape == (5, 16)
    assert typical.workload == given.workload
    assert typical.about.flops > given.about.flops
    (fixed, *_) = extract_tasks(mlp("N"), host(), {"N": 5}).tasks
    assert fixed.sizes == {}
    assert fixed.workload != given.workload


def test_inputs_are_drawn_by_their_seed_and_constants_are_the_models() -> None:
    one, same, other = (extract_tasks(mlp(3), host(), seed=s).tasks[0] for s in (1, 1, 2))
    np.testing.assert_array_equal(one.inputs["x"], same.inputs["x"])
    assert not np.array_equal(one.inputs["x"], other.inputs["x"])
    constants = {c.name: c.data for c in one.graph.constants}
    (w1,) = (i for i in mlp(3).graph.initializer if i.name == "w1")
    assert any(np.array_equal(data, numpy_helper.to_array(w1)) for data in constants.values())


def test_a_model_in_stages_is_refused() -> None:
    with pytest.raises(TuneError) as caught:
        extract_tasks(AXES, host())
    assert caught.value.code == "tune.segmented"
