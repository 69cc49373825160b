"""One case: compiled and run against the interpreter.

The result is a `CheckResult`: `right`, `refused` (the model cannot be read: no finding),
`uncompared` (an output's shape depends on rounding, so that it has no expected value: none
either), or a finding: `wrong` results, an `error` where the interpreter has an answer, no error
where it has one (`unchecked`), another `reading` of the model than ONNX's reference, `threads`
(another result on more threads), `internal` (an exception that is no Error).
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
from tilewright.fuzz.onnx_reference import differs_from_reference
from tilewright.fuzz.oracle import Expected, Interpreter, expect, interpreter, mismatch
from tilewright.ops.interpret import evaluate_node

ACCEPTED_OUTCOMES = ("right", "refused", "uncompared")
# How often a result is interpreted with other roundings before it is called wrong.
INTERPRETED_ROUNDINGS = 24


@dataclass(frozen=True)
class CheckResult:
    """How a case came out, in a word and in detail, and whether it met ONNX's reference."""

    kind: str
    detail: str = ""
    reference: bool = False

    @property
    def is_finding(self) -> bool:
        """Whether something is wrong."""
        return self.kind not in ACCEPTED_OUTCOMES

    def as_json(self) -> dict[str, Any]:
        """For another process."""
        return asdict(self)


def check_case(case: Case) -> CheckResult:
    """Compile and run a case, and compare."""
    try:
        return _check(case)
    except Exception:
        return CheckResult("internal", traceback.format_exc(limit=-6))


def _check(case: Case) -> CheckResult:
    try:
        run = interpreter(case.model)
    except Error as error:
        return CheckResult("refused", str(error))
    try:
        executable = compile(case.model, threads=1, cache=False)
    except Error as error:
        # sizes that can never fit are seen at once
        fine = any(_is_run(run, inputs) for inputs in case.runs)
        return CheckResult("error" if fine else "right", str(error))
    results = []
    with executable:
        for inputs in case.runs:
            results.append(_check_run(executable, run, inputs, case.model))
            if results[-1].is_finding:
                return results[-1]
    kinds = {result.kind for result in results}
    kind = "uncompared" if "uncompared" in kinds else "right"
    return CheckResult(kind, reference=any(result.reference for result in results))


def _is_run(run: Interpreter, inputs: Arrays) -> bool:
    try:
        run(inputs, evaluate_node)
    except Error:
        return False
    return True


def _check_run(executable: Any, run: Interpreter, inputs: Arrays, model: ModelProto) -> CheckResult:
    names = {port.name for port in executable.inputs}
    given = {name: a.copy() for name, a in inputs.items() if name in names}
    try:
        expected = expect(run, inputs)
    except Error as error:
        return _expecting_an_error(executable, given, error)
    try:
        found = list(executable.run(given).values())
    except Error as error:
        return CheckResult("error", str(error))
    changed = [n for n, a in given.items() if a.tobytes() != inputs[n].tobytes()]
    if changed:
        return CheckResult("wrong", f"input {changed[0]} was written to")
    if _mismatches(found, expected):
        wrong = _mismatches(found, expect(run, inputs, INTERPRETED_ROUNDINGS))
        if wrong:
            return CheckResult("wrong", wrong)
    difference = differs_from_reference(model, inputs, expected)
    if difference:
        difference = differs_from_reference(
            model, inputs, expect(run, inputs, INTERPRETED_ROUNDINGS)
        )
        if difference:
            return CheckResult("reading", difference)
    changed_by_threads = _differs_on_threads(executable, given, found)
    if changed_by_threads:
        return CheckResult("threads", changed_by_threads)
    kind = "right" if all(s is not None for s in expected.spread) else "uncompared"
    return CheckResult(kind, reference=difference is not None)


def _expecting_an_error(executable: Any, given: Arrays, expected: Error) -> CheckResult:
    try:
        executable.run(given)
    except Error:
        return CheckResult("right")
    return CheckResult("unchecked", f"no error natively where there should be: {expected}")


def _mismatches(found: list[Any], expected: Expected) -> str:
    for number, (x, y) in enumerate(zip(found, expected.outputs, strict=True)):
        wrong = mismatch(x, y, expected.spread[number], expected.exact)
        if wrong:
            return f"output {number} {wrong}"
    return ""


def _differs_on_threads(executable: Any, given: Arrays, found: list[Any]) -> str:
    """Which output has other bits on more threads, or nothing."""
    if not hasattr(executable, "set_threads"):
        return ""
    executable.set_threads(3)
    for number, (x, y) in enumerate(zip(found, executable.run(given).values(), strict=True)):
        if np.asarray(x).tobytes() != np.asarray(y).tobytes():
            return f"output {number} differs on 3 threads"
    executable.set_threads(1)
    return ""
