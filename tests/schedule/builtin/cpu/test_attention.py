from __future__ import annotations

from math import prod

import pytest

from tests.schedule.builtin.scheduled import AARCH64, check, kinds, scheduled, sources
from tilewright.arith.expr import Var, as_int
from tilewright.core.dtypes import F16, F32, DType
from tilewright.finalize.cpu.pipeline import finalize
from tilewright.ir.graph.nodes import Graph
from tilewright.ir.loop.walk import blocks, buffers
from tilewright.ir.types import tensor
from tilewright.ops.attention.problem import FusedAttentionAttrs
from tilewright.ops.graph_builder import GraphBuilder
from tilewright.schedule.builtin.cpu.attention import tasks_loop
from tilewright.target.registry import CPUS


def _attention(
    queries: object,
    keys: object,
    heads: object = 2,
    size: int = 8,
    mask: bool = False,
    dtype: DType = F32,
    **attrs: object,
) -> Graph:
    g = GraphBuilder("f")
    q = g.input("q", tensor(dtype, queries, heads, size))
    k = g.input("k", tensor(dtype, keys, heads, size))
    v = g.input("v", tensor(dtype, keys, heads, size))
    order = (1, 0, 2)
    given = FusedAttentionAttrs(q_perm=order, k_perm=order, v_perm=order, y_perm=order, **attrs)
    masks = [g.input("m", tensor(F32, queries, keys))] if mask else []
    return g.graph(g.add("fused_attention", q, k, v, *masks, attrs=given))


@pytest.mark.parametrize("target", ["aarch64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("queries", "keys"), [(1, 9), (9, 20), (Var("I"), Var("J"))])
def test_the_meaning_is_kept(target: str, queries: object, keys: object) -> None:
    for graph in (
        _attention(queries, keys, heads=1, mask=True),
        _attention(queries, keys, heads=1, size=5, window_right=0, fully_masked="zero"),
    ):
        assert check(graph, {"I": 9, "J": 66}, CPUS[target]) == ["attention"]


@pytest.mark.parametrize("target", ["aarch64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(("queries", "keys", "size"), [(9, 55, 21), (3, 18, 37), (1, 33, 17)])
def test_sizes_that_are_no_whole_vectors(target: str, queries: int, keys: int, size: int) -> None:
    graph = _attention(queries, keys, heads=1, size=size)
    assert check(graph, {}, CPUS[target]) == ["attention"]


@pytest.mark.parametrize("size", [21, 77])
def test_panels_are_written_to_their_last_column(size: int) -> None:
    """What memory held before may be NaN, or denormal and slow to multiply with."""
    (result,) = scheduled(_attention(9, 55, size=size))
    known = buffers(result.func)
    copies = [b for b in blocks(result.func.body) if b.writes[0].buffer in ("kt", "vt")]
    assert len(copies) == 2
    for block in copies:
        written = prod(as_int(it.extent) or 0 for it in block.iters)
        assert written == prod(as_int(n) or 0 for n in known[block.writes[0].buffer].shape)


def test_vectors_wider_than_a_block_of_keys() -> None:
    """A vector of 512 bits holds 32 numbers of f16, a block of keys may have 16."""
    graph = _attention(1, Var("J"), heads=1, dtype=F16, f16_accumulate=True)
    assert check(graph, {"J": 21}, CPUS["sapphirerapids"]) == ["attention"]


def test_several_blocks_of_keys() -> None:
    assert check(_attention(4, 513, heads=1, size=4), {}) == ["attention"]


def test_shared_keys() -> None:
    g = GraphBuilder("f")
    q = g.input("q", tensor(F32, 2, 3, 9, 8))
    k, v = (g.input(n, tensor(F32, 2, 1, 20, 8)) for n in "kv")
    graph = g.graph(g.add("fused_attention", q, k, v, attrs=FusedAttentionAttrs()))
    assert check(graph, {}) == ["attention"]


def test_recurrences_are_not_tasks() -> None:
    ((func, _),) = sources(_attention(9, 20))
    loop = tasks_loop(func)
    assert loop is not None
    assert loop.name == "at.rows"


def test_copies_stand_where_enough_batches_share_the_cores() -> None:
    for heads, copied_first in ((AARCH64.cores, False), (AARCH64.cores + 1, True), (1, True)):
        (result,) = scheduled(_attention(512, 512, heads, 64))
        parallel = kinds(result.func)["parallel"]
        assert len(parallel) == (3 if copied_first else 1)


@pytest.mark.parametrize("lengths", [(256, 2048), (Var("I"), Var("J"))])
def test_scores_are_the_threads_own(lengths: tuple[object, object]) -> None:
    """Only copies of keys and values, if anything, are in memory that is planned."""
    (result,) = scheduled(_attention(*lengths, heads=3, size=64))
    plain = finalize(result.func, AARCH64)
    assert {p.name for p in plain.params} <= {"x0", "x1", "x2", "y0", "kt", "vt"}
