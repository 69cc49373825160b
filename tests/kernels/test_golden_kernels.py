"""The kernels that the compiler makes are the ones that are kept; see `diff.py`."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from tests.for_each import for_each
from tests.kernels.cases import GENERATIONS, Case, all_cases, build_model
from tests.kernels.diff import GOLDEN, change_of, stale_files
from tests.kernels.snapshot import canonical, digest, rules_of
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.ir.loop.check_bounds import unproved_accesses
from tilewright.schedule.builtin.rules import RULES

# Rules of schedules that no model gets by itself.
ELSEWHERE = {"tuned", "override", "sketch", "template"}

# Symbolic sizes, and indices that are read from memory: what is hardest to prove.
BOUNDS_QUICKLY = {
    ("gemm_dynamic", "x86-64-v3"),
    ("gemm_dynamic", "neoverse-n1"),
    ("nonzero", "cuda -arch=sm_90a"),
    ("resize_linear", "x86-64-v3"),
}

FROM_MEMORY = {
    "y0[y1[0]]: index 0 cannot be shown to be at least 0",
    "x0[i1_i2, x1[0, i3]]: index 1 cannot be shown to be at least 0",
    "x0[i1_i2, x1[1, i3]]: index 1 cannot be shown to be at least 0",
}

BY_MODEL: dict[str, list[Case]] = {}
for _case in all_cases():
    BY_MODEL.setdefault(_case.model, []).append(_case)


def _seen(sample: dict[str, list[Case]]) -> Counter[tuple[str, str]]:
    return Counter((c.target, c.precision) for cases in sample.values() for c in cases)


def _wanted(row: tuple[str, str]) -> int:
    """How many kernels of a machine and precision CI compiles at least."""
    return 1 if row in GENERATIONS else 5


def _in_ci() -> dict[str, list[Case]]:
    """Each model for every third machine of its row, beginning with another one each time.

    And further ones for machines that are then seen too rarely. `make kernels-diff` and `make slow`
    compile all.
    """
    sample = {
        model: cases[n % 3 :: 3] or [*cases]
        for n, (model, cases) in enumerate(BY_MODEL.items(), start=1)
    }
    for case in all_cases():
        row = (case.target, case.precision)
        if _seen(sample)[row] < _wanted(row) and case not in sample[case.model]:
            sample[case.model].append(case)
    return sample


IN_CI = _in_ci()


@pytest.mark.parametrize("model", BY_MODEL)
def test_kernels_are_the_kept_ones(model: str) -> None:
    _assert_kept(IN_CI[model])


@pytest.mark.slow
@pytest.mark.parametrize("model", BY_MODEL)
def test_kernels_for_other_machines_are_the_kept_ones(model: str) -> None:
    _assert_kept([case for case in BY_MODEL[model] if case not in IN_CI[model]])


def _assert_kept(cases: list[Case]) -> None:
    found = [change for change in map(change_of, cases) if change is not None]
    shown = "\n\n".join(change.text(20) for change in found)
    assert not found, f"{shown}\n`make kernels-diff` shows all; `make kernels-update` keeps them"


def test_accesses_are_proved_to_be_in_bounds() -> None:
    _assert_proved([c for c in all_cases() if (c.model, c.target) in BOUNDS_QUICKLY])


@pytest.mark.slow
@pytest.mark.parametrize("model", BY_MODEL)
def test_all_accesses_are_proved_to_be_in_bounds(model: str) -> None:
    _assert_proved(BY_MODEL[model])


def _assert_proved(cases: list[Case]) -> None:
    """Only what is read from memory cannot be proved: an edit elsewhere never refuses a file."""
    found = {}
    for case in cases:
        options = make_options(target=case.target, precision=case.precision)
        for kernel in lower(build_model(case.model), options).distinct_kernels.values():
            unproved = set(unproved_accesses(kernel.scheduled.func)) - FROM_MEMORY
            found |= {(case.file, kernel.name): unproved} if unproved else {}
    assert found == {}


def test_no_file_is_left_over() -> None:
    assert stale_files() == []


def _seen_in_ci() -> str:
    return "".join((GOLDEN / c.file).read_text() for cases in IN_CI.values() for c in cases)


def test_every_built_in_rule_is_seen_in_ci() -> None:
    assert rules_of(_seen_in_ci()) == RULES.keys() - ELSEWHERE


def test_every_machine_is_seen_in_ci() -> None:
    seen = _seen(IN_CI)
    assert seen.keys() == {(c.target, c.precision) for c in all_cases()}
    assert all(n >= _wanted(row) for row, n in seen.items())


def test_every_annotation_is_seen_in_ci() -> None:
    text = _seen_in_ci()
    seen = set(re.findall(r'^annotate\("[^"]+", "(\w+)", \d+\)$', text, re.MULTILINE))
    assert seen >= {"grid_sync", "persistent", "pingpong", "stream_k", "warp_specialized"}


KERNEL = """declare float @llvm.sqrt.f32(float)
define void @mm(ptr %a) "target-cpu"="x" {
entry:
  %t1 = load float, ptr %a
  %t2 = call float @llvm.sqrt.f32(float %t1)
  ret void
}
"""


def test_digests_do_not_depend_on_names() -> None:
    renamed = KERNEL.replace("@mm", "@gemm").replace("%a", "%left").replace("%t", "%value")
    assert renamed != KERNEL
    assert canonical(renamed) == canonical(KERNEL)


@for_each(
    ("before", "after"),
    [("sqrt", "fabs"), ('"x"', '"y"'), ("float %t1", "float %t2"), ("load float", "load half")],
)
def test_digests_depend_on_the_code(before: str, after: str) -> None:
    assert digest(KERNEL.replace(before, after)) != digest(KERNEL)


def test_callers_are_numbered_with_the_kernels() -> None:
    text = "declare void @{0}(ptr)\ndefine void @main() {{\n  call void @{0}(ptr null)\n}}\n"
    one, two = text.format("relu"), text.format("gelu")
    assert digest(one) != digest(two)
    assert digest(one, ["relu"]) == digest(two, ["gelu"])
