from __future__ import annotations

import json

from tests.differential.kernel_graphs import KERNELS
from tests.models import convnet
from tilewright.arith.expr import Var
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.driver.report.step_rows import rows_by_kernel, schedules, step_rows


def test_rows_say_what_a_step_does_and_where_it_comes_from() -> None:
    build = lower(convnet(1), make_options(target="aarch64"))
    rows = step_rows(build)
    assert json.loads(json.dumps(rows)) == rows
    assert [row["name"] for row in rows] == [step.kernel.name for step in build.steps]
    assert all(row["nodes"] for row in rows)
    assert all(0 <= row["weights"] <= row["bytes"] for row in rows)
    assert any(row["weights"] for row in rows)
    by_kernel = rows_by_kernel(rows)
    assert sum(map(len, by_kernel.values())) == len(rows)
    assert all(row["name"] == name for name, found in by_kernel.items() for row in found)
    assert schedules(build).keys() == {row["name"] for row in rows}


def test_why_neighbours_are_kernels_of_their_own() -> None:
    build = lower(KERNELS["mlp"](8, 8, 8), make_options(target="aarch64"))
    rows = step_rows(build)
    reasons = [why for row in rows for why in row.get("unfused_reason", ())]
    assert any("anchor" in why or "elsewhere" in why for why in reasons)
    assert not any(why.endswith("is view") for why in reasons)


def test_symbolic_costs_are_formulas() -> None:
    build = lower(KERNELS["matmul"](Var("M"), 8, 16), make_options(target="aarch64"))
    (row,) = step_rows(build)
    assert row["flops"] == "M * 256"
    assert "M" in row["bytes"]
