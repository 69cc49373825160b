from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from tests.runtime.fake_model import arguments, manifest, objects
from tilewright.core.config import override
from tilewright.core.errors import ExecutionError
from tilewright.runtime.binding import Binder, Port
from tilewright.runtime.cpu.native_module import NativeModule
from tilewright.runtime.shape_plan import ShapePlanner


@pytest.fixture
def planner() -> Iterator[ShapePlanner]:
    described = manifest()
    inputs, outputs = (
        tuple(map(Port.from_manifest, described[key])) for key in ("inputs", "outputs")
    )
    module = NativeModule(objects())
    binder = Binder(inputs, described["symbols"], described["dim_sources"])
    yield ShapePlanner(binder, outputs, module.functions)
    module.close()


def test_a_plan_follows_from_the_shapes(planner: ShapePlanner) -> None:
    x, z = arguments(7)
    arrays, plan = planner.bind((x, z))
    assert arrays[0] is x
    assert plan.inputs == ((7, 3), (7,))
    assert plan.outputs == ((7, 3), (14,))
    assert list(plan.dims) == [7]
    assert plan.arena_size == 28


def test_plans_are_kept_and_bounded(planner: ShapePlanner) -> None:
    _, plan = planner.bind(arguments(4))
    assert planner.bind(arguments(4, seed=1))[1] is plan
    for n in range(500):
        planner.bind(arguments(n))
    assert len(planner._plans) <= 64
    assert planner.bind(arguments(4))[1].outputs == plan.outputs


def test_other_kinds_of_arrays_find_the_plan_after_every_check(planner: ShapePlanner) -> None:
    x, z = arguments(4)
    _, plan = planner.bind((x, z))
    for other in (np.asfortranarray(x), np.repeat(x, 2, axis=0)[::2], list(x)):
        arrays, again = planner.bind((other, z))
        assert again is plan
        assert arrays[0] is not other
        np.testing.assert_array_equal(arrays[0], x)
    with pytest.raises(ExecutionError, match="x is f32"):
        planner.bind((x.astype(np.float64), z))


def test_arguments_are_checked(planner: ShapePlanner) -> None:
    x, z = arguments(4)
    with pytest.raises(ExecutionError, match="size N is 4"):
        planner.bind((x, z[1:]))
    with pytest.raises(ExecutionError, match="x is f32"):
        planner.bind((np.float64(x), z))


def test_shapes_of_outputs_are_not_negative(planner: ShapePlanner) -> None:
    assert planner.checked([(2, 3), (0,)]) == ((2, 3), (0,))
    with pytest.raises(ExecutionError, match=r"run\.too-small.*\[-1\]"):
        planner.checked([(2, 3), (-1,)])


def test_a_run_may_not_take_more_memory_than_allowed(planner: ShapePlanner) -> None:
    # 28 bytes of arena, and 7 x 3 and 14 numbers as results
    with override(memory_limit_gb=100e-9), pytest.raises(ExecutionError, match="needs ") as caught:
        planner.bind(arguments(7))
    assert caught.value.code == "run.memory-limit"
    with override(memory_limit_gb=1e-6):
        planner.bind(arguments(7))
