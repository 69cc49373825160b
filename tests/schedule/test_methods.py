from __future__ import annotations

import inspect

import pytest

from tests.for_each import for_each
from tests.schedule.programs import matmul
from tilewright.schedule.methods import PrimitiveMethods
from tilewright.schedule.primitives.table import PRIMITIVES, names_of, rewrite_of
from tilewright.schedule.schedule import Schedule


def test_there_is_one_method_for_each_primitive() -> None:
    public = [name for name in vars(PrimitiveMethods) if not name.startswith("_")]
    assert public == ["apply", *PRIMITIVES]


@for_each("name", PRIMITIVES)
def test_a_method_is_its_primitive(name: str) -> None:
    method, rewrite, names = getattr(PrimitiveMethods, name), rewrite_of(name), names_of(name)
    own = inspect.signature(method)
    wanted = inspect.signature(rewrite)
    assert [*own.parameters.values()][1:] == [*wanted.parameters.values()][1:]
    made = "None" if names is None else inspect.signature(names).return_annotation
    assert own.return_annotation == made
    assert inspect.getdoc(method) == inspect.getdoc(rewrite)


def test_a_method_records_its_own_name_and_all_arguments(monkeypatch) -> None:
    steps = []
    monkeypatch.setattr(Schedule, "apply", lambda self, step: steps.append(step))
    sch = Schedule(matmul())
    for name in PRIMITIVES:
        parameters = [*inspect.signature(rewrite_of(name)).parameters][1:]
        getattr(sch, name)(*parameters)
        assert (steps[-1].name, steps[-1].args) == (name, tuple(parameters))
    assert [step.name for step in steps] == [*PRIMITIVES]


def test_lists_are_recorded_as_tuples() -> None:
    sch = Schedule(matmul())
    sch.split("y.i0", [None, 4])
    assert sch.trace.steps[0].args == ("y.i0", (None, 4))
    with pytest.raises(AssertionError, match="no trace can hold"):
        sch.split("y.i0", [None, 2.5])
