from __future__ import annotations

import random

import numpy as np
import pytest

from tilewright.fuzz.case_file import reads
from tilewright.fuzz.differential_check import check_case
from tilewright.fuzz.partial_model import PartialModel
from tilewright.fuzz.templates.control_flow import Maker, ModelBody, branch, loop, scan
from tilewright.fuzz.templates.plain import binary, unary


@pytest.mark.parametrize(("make", "op"), [(branch, "If"), (loop, "Loop"), (scan, "Scan")])
def test_bodies_are_checked_like_everything_else(make: Maker, op: str) -> None:
    found = []
    for seed in range(8):
        d = PartialModel(random.Random(seed), {"": 22}, lambda case: None)
        if make(d, d.fresh(np.dtype(np.float32), (3, 4)), [unary, binary]):
            found.append(d.case())
    assert len(found) >= 4
    assert all(case.model.graph.node[-1].op_type == op for case in found)
    assert check_case(found[0]).kind == "right"


def test_a_body_reads_from_outside() -> None:
    d = PartialModel(random.Random(0), {"": 22}, lambda case: None)
    outside = d.fresh(np.dtype(np.float32), (3,))
    body = ModelBody(d, {"inner": np.ones(3, np.float32)})
    made = body.attempt(body.node("Add", ["inner", outside]))
    node = d.node("If", [d.fresh(np.dtype(bool), ())], then_branch=body.graph(made))
    assert reads(node) == {outside, node.input[0]}
    assert body.alike("inner") == made[0]
