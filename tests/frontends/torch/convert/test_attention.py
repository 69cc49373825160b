from __future__ import annotations

import operator
from typing import Any

import numpy as np
import torch
from torch import fx
from torch.nn.functional import scaled_dot_product_attention as attend

from tests.frontends.torch.eager import check, imported, ops, random
from tilewright.frontends.torch.arrays import to_array
from tilewright.frontends.torch.importer import import_fx
from tilewright.ops.interpret import run_graph

Q, K, V = random(2, 4, 5, 8), random(2, 4, 7, 8, seed=1), random(2, 4, 7, 8, seed=2)


def test_is_one_operator() -> None:
    assert ops(check(attend, Q, K, V)) == ["attention"]


def test_masks() -> None:
    check(lambda q, k, v: attend(q, k, v, is_causal=True), Q, K, V)
    check(lambda q, k, v, m: attend(q, k, v, m), Q, K, V, random(5, 7))
    check(lambda q, k, v, m: attend(q, k, v, m, scale=0.3), Q, K, V, random(2, 1, 5, 7) > -1)


def test_shared_heads_and_no_heads() -> None:
    check(lambda q, k, v: attend(q, k, v, enable_gqa=True), Q, K[:, :2], V[:, :2])
    check(attend, Q[0], K[0], V[0])


def test_values_of_another_size() -> None:
    check(attend, Q, K, V[..., :6])


def test_dropout_leaves_out_weights_and_enlarges_the_others() -> None:
    """Of values that are all 1, each result is the sum of the weights that are left."""
    query, key = random(16, 4, 33, 8), random(16, 4, 65, 8, seed=1)
    graph = imported(
        lambda q, k: attend(q, k, torch.ones(16, 4, 65, 8), dropout_p=0.25), query, key
    )
    given = zip(graph.inputs, (query, key), strict=True)
    (sums,) = run_graph(graph, {v.name: to_array(x) for v, x in given}).values()
    assert abs(sums.mean() - 1) < 0.02
    assert 0.02 < sums.std() < 0.3


def test_kernels_of_gpus() -> None:
    """What torch calls on GPUs; there is none here that would trace it."""
    shapes = [torch.empty(x.shape, device="meta") for x in (Q, K, V)]
    given: dict[str, tuple[Any, ...]] = {"flash": (), "efficient": (None, False)}
    for kernel, more in (given | {"cudnn": (None, False)}).items():
        op = getattr(torch.ops.aten, f"_scaled_dot_product_{kernel}_attention").default
        graph = fx.Graph()
        inputs = [graph.placeholder(name) for name in "qkv"]
        call = graph.call_function(op, (*inputs, *more), {"scale": 0.3})
        result = graph.call_function(operator.getitem, (call, 0))
        graph.output((result,))
        for node, x in zip(inputs, shapes, strict=True):
            node.meta["val"] = x
        call.meta["val"] = (torch.empty(Q.shape, device="meta"), *(None,) * 3)
        result.meta["val"] = call.meta["val"][0]
        made = import_fx(fx.GraphModule({}, graph), {}).graph
        (found,) = run_graph(
            made, {n: to_array(x) for n, x in zip("qkv", (Q, K, V), strict=True)}
        ).values()
        right = to_array(attend(Q, K, V, scale=0.3))
        np.testing.assert_allclose(found, right, rtol=1e-5, atol=1e-6)
