from __future__ import annotations

import numpy as np

from tests.differential.native import check_native, compare
from tilewright.arith.expr import Expr, Var, minimum
from tilewright.arith.simplify import simplify
from tilewright.arith.walk import substitute
from tilewright.core.dtypes import F32
from tilewright.driver.compile_graph import lower_graph, optimized_graph
from tilewright.driver.options import CompileOptions, make_options
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.types import tensor
from tilewright.lower.dim_params import DimParams
from tilewright.ops.conv.pool import PoolAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.target.registry import CPUS

H, W = Var("H"), Var("W")


def test_what_is_computed_gets_a_name() -> None:
    names = DimParams()
    sizes: list[Expr] = [H, H * 2 + 1, (W + 1) // 2, (W + 31) // 32 * 8 * H, (W + 1) // 2 + H // 3]
    named = [names.named(size) for size in sizes]
    assert named[:2] == sizes[:2]
    assert named[2] is Var("size.0")
    assert set(names.given) == {"size.0", "size.1", "size.2"}
    for size, name in zip(sizes, named, strict=True):
        assert simplify(substitute(name, names.given)) is simplify(size)


def test_what_has_no_name_stays() -> None:
    names = DimParams()
    names.named((W + 1) // 2)
    assert names.known((W + 1) // 2 * 3) is Var("size.0") * 3
    assert names.known(minimum(W, H)) is minimum(W, H)


def _pools(count: int) -> Graph:
    g = GraphBuilder("pools")
    y = g.input("x", tensor(F32, 1, H, W, 4))
    for _ in range(count):
        pool = PoolAttrs((2, 2), (1, 1, 1, 1), (1, 1), "channels_last", (3, 3))
        y = g.add("max_pool", y, attrs=pool)
    return g.graph(y)


def test_layers_of_other_sizes_share_a_kernel() -> None:
    build = lower_graph(optimized_graph(_pools(4), make_options()), CompileOptions(CPUS["aarch64"]))
    assert len(build.steps) == 4
    assert len({step.kernel.name for step in build.steps[1:]}) == 1
    assert len({step.kernel.dim_args for step in build.steps}) == 4
    assert len({step.kernel.bytes for step in build.steps}) == 4


def test_a_shared_kernel_computes_each_layer() -> None:
    graph, rng = _pools(4), np.random.default_rng(0)
    images = [rng.standard_normal((1, h, w, 4)).astype("f4") for h, w in ((33, 70), (5, 1), (1, 9))]
    with check_native(graph, {"x": images[0]}) as model:
        for x in images[1:]:
            compare(graph, model, {"x": x})
