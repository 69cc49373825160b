from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.models import mlp
from tilewright.driver.options import make_options
from tilewright.driver.report.explorer.document import SCHEMA, ExploredModel, explorer_document
from tilewright.driver.report.explorer.explore import explore

KEYS = (
    *("schema", "model", "totals", "stages", "passes", "nodes", "graphs", "kernels", "steps"),
    *("unfused", "memory", "timeline", "roofline"),
)


def test_a_document_is_plain_json_with_every_part(measured: ExploredModel) -> None:
    document = explorer_document(measured)
    assert tuple(document) == KEYS
    assert document["schema"] == SCHEMA
    assert json.loads(json.dumps(document, allow_nan=False)) == json.loads(json.dumps(document))


def test_kernels_and_steps_refer_to_each_other(measured: ExploredModel) -> None:
    document = explorer_document(measured)
    kernels, steps = document["kernels"], document["steps"]
    assert sorted(s for k in kernels for s in k["steps"]) == list(range(len(steps)))
    assert all(steps[s]["kernel"] == n for n, k in enumerate(kernels) for s in k["steps"])
    assert [steps[0]["nodes"][-1], kernels[0]["rule"]] == ["relu_2 (relu)", "register_blocked"]


def test_times_are_measured_and_bounded(measured: ExploredModel, unmeasured: ExploredModel) -> None:
    for kernel in explorer_document(measured)["kernels"]:
        assert 0 < kernel["min_ms"] <= kernel["median_ms"]
        assert kernel["least_ms"] > 0
    for kernel in explorer_document(unmeasured)["kernels"]:
        assert (kernel["min_ms"], kernel["of_roof"]) == (None, None)
        assert kernel["least_ms"] > 0
    assert explorer_document(unmeasured)["model"]["measured"] is False


def test_schedules_have_the_cost_of_the_second_best(measured: ExploredModel) -> None:
    kernels = {k["name"]: k for k in explorer_document(measured)["kernels"]}
    choices = {c["name"]: c for c in kernels["transpose_conv_add_relu"]["choices"]}
    tile = choices["conv.mr"]
    assert tile["taken"] not in tile["others"]
    assert tile["second"] in tile["others"]
    assert tile["second_cost"] >= tile["cost"] > 0


def test_pairs_that_were_not_fused_name_their_steps(measured: ExploredModel) -> None:
    document = explorer_document(measured)
    pair = document["unfused"][0]
    assert pair["producer"].startswith("relu ")
    assert document["steps"][pair["from"]]["kernel"] == 0
    assert document["kernels"][document["steps"][pair["to"]]["kernel"]]["name"] == "max_pool"


def test_passes_lead_from_graph_to_graph(measured: ExploredModel) -> None:
    document = explorer_document(measured)
    passes = document["passes"]
    numbers = [0, *(p["graph"] for p in passes)]
    assert all((b > a) == p["changed"] for (a, b), p in zip(pairwise(numbers), passes, strict=True))
    assert numbers[-1] == len(document["graphs"]) - 1
    assert all(p["what"] for p in passes)


def test_buffers_of_the_arena_do_not_overlap(measured: ExploredModel) -> None:
    memory = explorer_document(measured)["memory"]
    buffers = memory["buffers"]
    assert max(b["offset"] + b["size"] for b in buffers) <= memory["arena"]
    for a in buffers:
        for b in buffers:
            alive = a is not b and a["first"] <= b["last"] and b["first"] <= a["last"]
            apart = a["offset"] + a["size"] <= b["offset"] or b["offset"] + b["size"] <= a["offset"]
            assert apart or not alive


@pytest.mark.parametrize("dims", [{}, {"N": 2}], ids=["symbolic", "known"])
def test_symbolic_sizes_have_no_places(dims: dict[str, int]) -> None:
    model = explore("mlp", mlp("N"), make_options("x86-64-v3", dims=dims))
    document = explorer_document(model)
    assert document["memory"]["symbolic"] == (not dims)
    assert bool(document["memory"]["buffers"]) == bool(dims)
    assert document["roofline"] is None
    assert document["totals"]["least_ms"] is None
