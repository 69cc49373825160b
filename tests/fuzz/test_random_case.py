from __future__ import annotations

from tilewright.fuzz.case_file import Case
from tilewright.fuzz.random_case import random_case


def _case(seed: str, operators: frozenset[str] = frozenset()) -> Case:
    return random_case(seed, operators, lambda case: None)


def test_a_seed_gives_the_same_case_again() -> None:
    for number in range(3):
        one, other = _case(f"5:{number}"), _case(f"5:{number}")
        assert one.model == other.model
        assert str(one.runs) == str(other.runs)


def test_operators_can_be_chosen() -> None:
    found = [_case(f"0:{n}", frozenset({"Gather"})) for n in range(6)]
    assert any(node.op_type == "Gather" for case in found for node in case.model.graph.node)


def test_some_cases_leave_sizes_open_and_run_at_several() -> None:
    found = [_case(f"2:{n}") for n in range(40)]
    assert any(len(case.runs) > 1 for case in found)
