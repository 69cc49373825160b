"""The passes that a model goes through, in order.

The model's outputs keep their order; their names may change on the way, so whoever needs the names
that the model came with takes them before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import get_close_matches
from functools import partial
from itertools import chain

from tilewright.core.dtypes import BF16, F16, DType
from tilewright.core.errors import ConfigError
from tilewright.ir.graph.nodes import Graph
from tilewright.passes.algebra.combine_parallel_matmuls import combine_parallel_matmuls
from tilewright.passes.algebra.fold_scale_bias import fold_scale_bias
from tilewright.passes.algebra.merge_embedding_lookups import merge_embedding_lookups
from tilewright.passes.algebra.one_hot_matmul_to_gather import one_hot_matmul_to_gather
from tilewright.passes.algebra.simplify_algebra import simplify_algebra
from tilewright.passes.algebra.split_matmuls import split_matmuls
from tilewright.passes.algebra.topk_to_sort import topk_to_sort
from tilewright.passes.attention.fold_repeat_kv import fold_repeat_kv
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.passes.attention.pack_gqa import pack_gqa
from tilewright.passes.attention.tile_attention import tile_attention
from tilewright.passes.canonicalize.cse import cse
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.canonicalize.decompose import decompose
from tilewright.passes.canonicalize.eliminate_noop import eliminate_noop
from tilewright.passes.canonicalize.fold_constants import fold_constants
from tilewright.passes.canonicalize.infer_types import infer_types
from tilewright.passes.canonicalize.simplify_conditionals import simplify_conditionals
from tilewright.passes.canonicalize.simplify_loops import simplify_loops
from tilewright.passes.canonicalize.unify_dims import unify_dims
from tilewright.passes.conv.fold_pad_into_conv import fold_pad_into_conv
from tilewright.passes.conv.pad_for_tensor_cores import pad_for_tensor_cores
from tilewright.passes.conv.separate_resizes import separate_resizes
from tilewright.passes.conv.split_conv_groups import split_conv_groups
from tilewright.passes.conv.trim_padding_taps import trim_padding_taps
from tilewright.passes.conv.winograd import winograd
from tilewright.passes.fuse import fuse, fuse_with_report
from tilewright.passes.layout.choose_layouts import choose_layouts, layouts_of_halves
from tilewright.passes.layout.sink_reshapes import sink_reshapes
from tilewright.passes.layout.sink_transposes import sink_transposes
from tilewright.passes.manager import GraphPass, PassLog
from tilewright.passes.memory.copy_aliased_outputs import copy_aliased_outputs
from tilewright.passes.memory.eliminate_concat import eliminate_concat
from tilewright.passes.memory.factor_concats import factor_concats
from tilewright.passes.precision.bf16_attention import bf16_attention
from tilewright.passes.precision.bf16_matmuls import bf16_matmuls
from tilewright.passes.precision.pack_subbyte_constants import pack_subbyte_constants
from tilewright.passes.precision.to_mixed_precision import f16_accumulation, to_mixed_precision
from tilewright.target.cpu import CpuTarget
from tilewright.target.host import host
from tilewright.target.target import Target, kind_of

# What is added: before which pass, its name, and itself, which takes a machine and a log as well.
Lowering = tuple[tuple[str, str, Callable[..., Graph]], ...]
GRAPH_PASSES: tuple[GraphPass, ...] = (
    GraphPass("unify_dims", unify_dims, whole=True),
    GraphPass("decompose", decompose),
    GraphPass("eliminate_noop", eliminate_noop),
    GraphPass("fold_constants", fold_constants),
    GraphPass("simplify_conditionals", simplify_conditionals),
    GraphPass("simplify_loops", simplify_loops),
    GraphPass("cse", cse),
    GraphPass("dce", dce),
    GraphPass("simplify_algebra", simplify_algebra),
    GraphPass("fold_pad_into_conv", fold_pad_into_conv),
    GraphPass("trim_padding_taps", trim_padding_taps),
    GraphPass("one_hot_matmul_to_gather", one_hot_matmul_to_gather),
    GraphPass("dce", dce),
    GraphPass("choose_layouts", choose_layouts),
    GraphPass("sink_reshapes", sink_reshapes),
    GraphPass("merge_embedding_lookups", merge_embedding_lookups),
    GraphPass("split_matmuls", split_matmuls),
    GraphPass("dce", dce),
    GraphPass("fold_scale_bias", fold_scale_bias),
    GraphPass("split_conv_groups", split_conv_groups),
    GraphPass("winograd", winograd),
    GraphPass("separate_resizes", separate_resizes),
    GraphPass("topk_to_sort", topk_to_sort),
    GraphPass("sink_reshapes", sink_reshapes),
    GraphPass("dce", dce),
    GraphPass("fuse_attention", fuse_attention),
    GraphPass("fold_repeat_kv", fold_repeat_kv),
    GraphPass("dce", dce),
    GraphPass("pack_subbyte_constants", pack_subbyte_constants),
    GraphPass("copy_aliased_outputs", copy_aliased_outputs),
    GraphPass("factor_concats", factor_concats),
    GraphPass("eliminate_concat", eliminate_concat),
    GraphPass("fuse", fuse),
)


# What takes the place of another pass on GPUs.
ON_GPU: dict[str, tuple[GraphPass, ...]] = {
    "choose_layouts": (GraphPass("layouts_of_halves", layouts_of_halves),),
    "winograd": (GraphPass("pad_for_tensor_cores", pad_for_tensor_cores),),
    "fuse_attention": (GraphPass("tile_attention", tile_attention),),
    "fold_repeat_kv": (
        GraphPass("pack_gqa", pack_gqa),
        GraphPass("combine_parallel_matmuls", combine_parallel_matmuls),
    ),
}
PASSES: dict[str, tuple[GraphPass, ...]] = {
    "cpu": GRAPH_PASSES,
    "gpu": tuple(chain.from_iterable(ON_GPU.get(p.name, (p,)) for p in GRAPH_PASSES)),
}

# Passes that take the machine as `target`; alone they decide for this one.
TARGETED = (winograd, tile_attention, pack_gqa, combine_parallel_matmuls)


def graph_passes(precision: str, target: Target, log: PassLog) -> tuple[GraphPass, ...]:
    """The passes for a precision; what they decide for `target` is noted in `log`."""
    lowering = LOWERING[kind_of(target)].get(precision, ())
    passes = tuple(_noted(_for_target(p, target), log) for p in PASSES[kind_of(target)])
    for before, name, run in lowering:
        at = next(i for i, p in enumerate(passes) if p.name == before)
        passes = (*passes[:at], GraphPass(name, partial(run, target, log)), *passes[at:])
    return passes


def _for_target(p: GraphPass, target: Target) -> GraphPass:
    """A pass that decides for a machine, told which one."""
    run: Callable[..., Graph] = p.run
    return replace(p, run=partial(run, target=target)) if run in TARGETED else p


def _noted(p: GraphPass, log: PassLog) -> GraphPass:
    """Fusion, made to note what it leaves apart."""
    return replace(p, run=partial(_fuse, log)) if p.run is fuse else p


def _fuse(log: PassLog, graph: Graph) -> Graph:
    """Put nodes that one kernel computes into groups."""
    result, refusals = fuse_with_report(graph)
    log.refusals += refusals
    return result


def lower_precision_here(graph: Graph) -> Graph:
    """Compute products in bf16 where this machine gains by it."""
    return bf16_matmuls(graph, host())[0]


def lower_to_f16_here(graph: Graph) -> Graph:
    """Compute in f16 from the first product on, if this machine can."""
    return to_mixed_precision(graph, host())[0]


def _lower_precision(target: CpuTarget, log: PassLog, graph: Graph) -> Graph:
    """Compute products in bf16 where the machine gains by it; only where the user allows it."""
    result, decisions = bf16_matmuls(graph, target)
    log.notes += map(str, decisions)
    return result


def _lower_to(dtype: DType, target: Target, log: PassLog, graph: Graph) -> Graph:
    """Compute in a narrow type where the machine can; only where the user allows it."""
    result, decisions = to_mixed_precision(graph, target, dtype)
    log.notes += map(str, decisions)
    return result


def round_attention_here(graph: Graph) -> Graph:
    """Compute the products of attention in bf16 where this machine gains by it."""
    return bf16_attention(graph, host())[0]


def _round_attention(target: CpuTarget, log: PassLog, graph: Graph) -> Graph:
    """Compute the products of attention in bf16; only where the user allows it."""
    result, decisions = bf16_attention(graph, target)
    log.notes += map(str, decisions)
    return result


def _short_sums(target: CpuTarget, log: PassLog, graph: Graph) -> Graph:
    """Let products of f16 sum a few terms at a time in f16."""
    return f16_accumulation(graph) if target.computes_in_f16 else graph


def _eliminate_dead(target: Target, log: PassLog, graph: Graph) -> Graph:
    """Remove the conversions that nobody reads any more."""
    return dce(graph)


def _choose_layouts(target: Target, log: PassLog, graph: Graph) -> Graph:
    """Channels last, where instructions on matrices read them 16 bytes at a time."""
    return choose_layouts(graph)


def _on_gpu(dtype: DType) -> Lowering:
    return (
        ("sink_reshapes", "choose_layouts", _choose_layouts),
        ("pad_for_tensor_cores", "to_mixed_precision", partial(_lower_to, dtype)),
        ("pad_for_tensor_cores", "dce", _eliminate_dead),
    )


# What a precision adds on each kind of machine, each before a pass. In bf16 only products that stay
# in f32 may still be computed by Winograd's method, which would lose bits of bf16.
LOWERING: dict[str, dict[str, Lowering]] = {
    "cpu": {
        "bf16": (
            ("winograd", "bf16_matmuls", _lower_precision),
            ("fold_repeat_kv", "bf16_attention", _round_attention),
        ),
        "fp16": (
            ("winograd", "to_mixed_precision", partial(_lower_to, F16)),
            ("winograd", "dce", _eliminate_dead),
            ("copy_aliased_outputs", "f16_accumulation", _short_sums),
        ),
    },
    "gpu": {
        "bf16": _on_gpu(BF16),
        "fp16": _on_gpu(F16),
        "tf32": (("sink_reshapes", "choose_layouts", _choose_layouts),),
    },
}

# Passes that tools may run besides.
OTHER_PASSES: tuple[GraphPass, ...] = (
    GraphPass("bf16_matmuls", lower_precision_here),
    GraphPass("bf16_attention", round_attention_here),
    GraphPass("to_mixed_precision", lower_to_f16_here),
    GraphPass("f16_accumulation", f16_accumulation),
    GraphPass("infer_types", infer_types),
    GraphPass("sink_transposes", sink_transposes),
    *chain.from_iterable(ON_GPU.values()),
)


def all_passes() -> dict[str, GraphPass]:
    """Every pass by name, in the order in which they first run."""
    found: dict[str, GraphPass] = {}
    for p in (*GRAPH_PASSES, *OTHER_PASSES):
        found.setdefault(p.name, p)
    return found


def find_pass(name: str) -> GraphPass:
    """The pass called `name`, in which `-` is as good as `_`."""
    known = all_passes()
    name = name.replace("-", "_")
    if name not in known:
        near = get_close_matches(name, known, 3) or known
        raise ConfigError(
            "pass.unknown", f"no pass named {name!r}", help=f"one of {', '.join(near)}"
        )
    return known[name]
