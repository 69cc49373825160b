"""One case: compiled and run against the interpreter.

What comes out is a `Verdict`: `right`, `refused` (the model cannot be read, which is no finding),
or what is wrong: `wrong` results, an `error` where the interpreter has an answer, no error where it
has one (`unchecked`), another `reading` of the model than ONNX's reference, `threads` (another
result on more threads), `internal` (an exception that is no Error).
"""

from __future__ import annotations

import traceback
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from onnx import ModelProto

from tilewright.core.errors import Error
from tilewright.driver.compile import compile
from tilewright.fuzz.case_file import Arrays, Case
from tilewright.fuzz.onnx_reference import unlike_reference
from tilewright.fuzz.oracle import Expected, Interpreter, expect, interpreter, mismatch
from tilewright.ops.interpret import evaluate_node

FINE = ("right", "refused")
# How often a result is interpreted with other roundings before it is called wrong.
MORE_TRIES = 24


@dataclass(frozen=True)
class Verdict:
    """How a case came out, in a word and in detail."""

    kind: str
    detail: str = ""

    @property
    def is_finding(self) -> bool:
        """Whether something is wrong."""
        return self.kind not in FINE

    def as_json(self) -> dict[str, str]:
        """For another process."""
        return asdict(self)


def check_case(case: Case) -> Verdict:
    """Compile and run a case, and compare."""
    try:
        return _check(case)
    except Exception:
        return Verdict("internal", traceback.format_exc(limit=-6))


def _check(case: Case) -> Verdict:
    try:
        run = interpreter(case.model)
    except Error as error:
        return Verdict("refused", str(error))
    try:
        executable = compile(case.model, threads=1, cache=False)
    except Error as error:
        # sizes that can never fit are seen at once
        fine = any(_is_run(run, inputs) for inputs in case.runs)
        return Verdict("error" if fine else "right", str(error))
    with executable:
        for inputs in case.runs:
            verdict = _check_run(executable, run, inputs, case.model)
            if verdict.kind != "right":
                return verdict
    return Verdict("right")


def _is_run(run: Interpreter, inputs: Arrays) -> bool:
    try:
        run(inputs, evaluate_node)
    except Error:
        return False
    return True


def _check_run(executable: Any, run: Interpreter, inputs: Arrays, model: ModelProto) -> Verdict:
    names = {port.name for port in executable.inputs}
    given = {name: a.copy() for name, a in inputs.items() if name in names}
    try:
        expected = expect(run, inputs)
    except Error as error:
        return _expecting_an_error(executable, given, error)
    try:
        found = list(executable.run(given).values())
    except Error as error:
        return Verdict("error", str(error))
    changed = [n for n, a in given.items() if a.tobytes() != inputs[n].tobytes()]
    if changed:
        return Verdict("wrong", f"input {changed[0]} was written to")
    if _mismatches(found, expected):
        wrong = _mismatches(found, expect(run, inputs, MORE_TRIES))
        if wrong:
            return Verdict("wrong", wrong)
    if unlike_reference(model, inputs, expected):
        unlike = unlike_reference(model, inputs, expect(run, inputs, MORE_TRIES))
        if unlike:
            return Verdict("reading", unlike)
    return _check_threads(executable, given, found)


def _expecting_an_error(executable: Any, given: Arrays, expected: Error) -> Verdict:
    try:
        executable.run(given)
    except Error:
        return Verdict("right")
    return Verdict("unchecked", f"no error natively where there should be: {expected}")


def _mismatches(found: list[Any], expected: Expected) -> str:
    for number, (x, y) in enumerate(zip(found, expected.outputs, strict=True)):
        wrong = mismatch(x, y, expected.spread[number], expected.exact)
        if wrong:
            return f"output {number} {wrong}"
    return ""


def _check_threads(executable: Any, given: Arrays, found: list[Any]) -> Verdict:
    """The same bits on more threads."""
    if not hasattr(executable, "set_threads"):
        return Verdict("right")
    executable.set_threads(3)
    for number, (x, y) in enumerate(zip(found, executable.run(given).values(), strict=True)):
        if np.asarray(x).tobytes() != np.asarray(y).tobytes():
            return Verdict("threads", f"output {number} differs on 3 threads")
    executable.set_threads(1)
    return Verdict("right")
