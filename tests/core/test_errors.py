from __future__ import annotations

import pytest

from tilewright.core import errors
from tilewright.core.errors import NOWHERE, Error, LegalityError, Loc, ScheduleError


def test_the_whole_text() -> None:
    error = ScheduleError(
        "split.factor",
        "cannot split loop i by 0",
        loc=Loc("resnet50.onnx", "Conv_12"),
        notes=('in split("i", 0)',),
        help="use a factor of at least 1",
    )
    assert str(error) == (
        "ScheduleError[split.factor]: cannot split loop i by 0\n"
        "  --> resnet50.onnx, node Conv_12\n"
        '  in split("i", 0)\n'
        "  help: use a factor of at least 1"
    )


def test_locations() -> None:
    assert str(Loc("m.graph", "", 3, 7)) == "m.graph:3:7"
    assert str(Loc(node="Add_1")) == "node Add_1"
    assert str(NOWHERE) == ""
    assert str(Error("a.b", "c")) == "Error[a.b]: c"


def test_the_first_location_stays() -> None:
    error = Error("a.b", "c")
    assert error.at(Loc("one")) is error
    assert error.at(Loc("two")).loc == Loc("one")


def test_notes_are_asked_for_only_when_printed() -> None:
    class Costly:
        def __str__(self) -> str:
            raise RuntimeError("printed")

    error = Error("a.b", "c", notes=(Costly(),))
    with pytest.raises(RuntimeError, match="printed"):
        str(error)


def test_every_error_is_one_of_ours() -> None:
    classes = [c for c in vars(errors).values() if isinstance(c, type) and issubclass(c, Exception)]
    assert len(classes) > 10
    assert all(issubclass(c, Error) for c in classes)
    assert issubclass(LegalityError, ScheduleError)
