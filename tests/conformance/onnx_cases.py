"""ONNX's own backend tests on our compiled code: the cases by kind, and how many of them pass.

    python -m tests.conformance.onnx_cases [PATTERN] [--jobs 2] [--json FILE]

`make conformance` keeps the counts in `benchmarks/results/conformance.json`, of which
`docs/results/conformance.md` shows a table.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import unittest
import warnings
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import onnx
from onnx.backend.test import BackendTest, runner
from onnx.backend.test.case.test_case import TestCase
from onnx.backend.test.loader import load_model_tests

from tilewright.compat.onnx_backend import TilewrightBackend
from tilewright.core.worker.crash import reason

# Cases whose expected results do not follow from the operator: a pattern, and why. They are run all
# the same, and may pass by chance.
NOT_DETERMINED = {
    r"test_bernoulli.*": "expects the very numbers that NumPy drew when the case was made",
    r"test_dft_inverse(_opset19)?_cpu": "expects NumPy's rounding error, 1.9e-7, where 0 is exact",
    r"test_attention_4d_causal_fp16_expanded_cpu": "expects a softmax whose every step is rounded "
    "to f16; ours is rounded once and lies nearer to the result in f64",
}

KINDS = {
    "OnnxBackendNodeModelTest": "node",
    "OnnxBackendSimpleModelTest": "simple",
    "OnnxBackendPyTorchConvertedModelTest": "pytorch-converted",
    "OnnxBackendPyTorchOperatorModelTest": "pytorch-operator",
    "OnnxBackendRealModelTest": "real",
}


@cache
def loaded_cases(*, kind: str) -> list[TestCase]:
    """ONNX's cases of one kind; making them takes many seconds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # making the cases overflows here and there
        return list(load_model_tests(kind=kind))


class _Tests(BackendTest):
    """ONNX's runner, that takes a scalar in a sequence for a sequence itself, without that."""

    @classmethod
    def assert_similar_outputs(
        cls, ref_outputs: Any, outputs: Any, rtol: float, atol: float, model_dir: Any = None
    ) -> None:
        assert len(ref_outputs) == len(outputs)
        for expected, found in zip(ref_outputs, outputs, strict=True):
            if isinstance(expected, list | tuple):
                assert isinstance(found, list | tuple)
                cls.assert_similar_outputs(expected, found, rtol, atol, model_dir)
            else:
                super().assert_similar_outputs([expected], [found], rtol, atol, model_dir)


@cache
def backend_cases(module: str) -> dict[str, type[unittest.TestCase]]:
    """The classes of ONNX's tests for the processor, as if `module` had them."""
    # the runner keeps inputs of its whole models in a folder
    os.environ.setdefault("ONNX_MODELS", tempfile.mkdtemp(prefix="onnx-models-"))
    runner.load_model_tests = loaded_cases
    classes: dict[str, type[unittest.TestCase]] = _Tests(TilewrightBackend, module).test_cases
    for cases in classes.values():
        for name in [name for name in vars(cases) if name.endswith("_cuda")]:
            delattr(cases, name)
    return classes


def why_not_determined(name: str) -> str | None:
    """Why a case need not pass, `None` if it must."""
    return next((why for p, why in NOT_DETERMINED.items() if re.fullmatch(p, name)), None)


def outcome(cases: type[unittest.TestCase], name: str) -> str:
    """What came of a case: "pass", or why it does not."""
    result = unittest.TestResult()
    cases(name).run(result)
    wrong = [*result.errors, *result.failures]
    if not wrong:
        return "pass"
    return why_not_determined(name) or reason(wrong[0][1])


CLASSES: dict[str, type[unittest.TestCase]] = {}  # filled before the workers are forked


def _outcomes(part: list[tuple[str, str]]) -> list[tuple[str, str, str]]:
    return [(kind, name, outcome(CLASSES[kind], name)) for kind, name in part]


def all_outcomes(pattern: str, jobs: int) -> Iterator[tuple[str, str, str]]:
    """Kind, name and outcome of the cases whose name contains the pattern."""
    CLASSES.update(backend_cases(__name__))
    wanted = [
        (kind, name)
        for kind, cases in CLASSES.items()
        for name in sorted(vars(cases))
        if name.startswith("test_") and re.search(pattern, name)
    ]
    parts = [wanted[i : i + 8] for i in range(0, len(wanted), 8)]
    with ProcessPoolExecutor(jobs, mp_context=get_context("fork")) as pool:
        for part, future in [(part, pool.submit(_outcomes, part)) for part in parts]:
            try:
                yield from future.result()
            except BrokenProcessPool:
                yield from ((kind, name, "the process died") for kind, name in part)


def counted(outcomes: list[tuple[str, str, str]]) -> list[dict[str, Any]]:
    """Cases by kind: how many there are, how many pass, and why the others do not."""
    rows = []
    for kind, name in KINDS.items():
        found = [(case, why) for k, case, why in outcomes if k == kind]
        left = {case: why for case, why in found if why != "pass"}
        rows.append(
            {"kind": name, "cases": len(found), "pass": len(found) - len(left), "left": left}
        )
    return [row for row in rows if row["cases"]]


def main() -> None:
    """Run the cases, print and keep what came of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pattern", nargs="?", default="", help="only cases whose name matches")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=Path, help="write the counts there")
    options = parser.parse_args()
    rows = counted(list(all_outcomes(options.pattern, options.jobs)))
    for row in rows:
        print(f"{row['kind']}: {row['pass']} of {row['cases']} pass")
        for name, why in row["left"].items():
            print(f"  {name}: {why}")
    if options.json:
        sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
        from machine import describe_machine
        from results_file import write_results

        write_results(options.json, describe_machine(()), onnx=onnx.__version__, results=rows)


if __name__ == "__main__":
    main()
