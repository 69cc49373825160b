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
from tilewright.passes.algebra.combine_parallel_matmuls import stack_matmuls
from tilewright.passes.algebra.fold_scale_bias import fold_affine
from tilewright.passes.algebra.merge_embedding_lookups import join_tables
from tilewright.passes.algebra.one_hot_matmul_to_gather import look_up_rows
from tilewright.passes.algebra.simplify_algebra import simplify_algebra
from tilewright.passes.algebra.split_matmuls import split_matmuls
from tilewright.passes.algebra.topk_to_sort import sort_rows
from tilewright.passes.attention.fold_repeat_kv import share_heads
from tilewright.passes.attention.fuse_attention import form_attention
from tilewright.passes.attention.pack_gqa import join_heads
from tilewright.passes.attention.tile_attention import tile_attention
from tilewright.passes.canonicalize.cse import merge_equal
from tilewright.passes.canonicalize.dce import eliminate_dead
from tilewright.passes.canonicalize.decompose import decompose
from tilewright.passes.canonicalize.eliminate_noop import eliminate_noop
from tilewright.passes.canonicalize.fold_constants import fold_constants
from tilewright.passes.canonicalize.infer_types import infer_types
from tilewright.passes.canonicalize.simplify_conditionals import simplify_control
from tilewright.passes.canonicalize.simplify_loops import simplify_loops
from tilewright.passes.canonicalize.unify_dims import apply_checks
from tilewright.passes.conv.fold_pad_into_conv import absorb_pads
from tilewright.passes.conv.pad_for_tensor_cores import pad_channels
from tilewright.passes.conv.separate_resizes import separate_resizes
from tilewright.passes.conv.split_conv_groups import split_groups
from tilewright.passes.conv.trim_padding_taps import trim_windows
from tilewright.passes.conv.winograd import winograd
from tilewright.passes.fuse import fuse, fuse_with_report
from tilewright.passes.layout.choose_layouts import choose_layouts, layouts_of_halves
from tilewright.passes.layout.sink_reshapes import sink_reshapes
from tilewright.passes.layout.sink_transposes import sink_transposes
from tilewright.passes.manager import GraphPass, PassLog
from tilewright.passes.memory.copy_aliased_outputs import distinct_outputs
from tilewright.passes.memory.eliminate_concat import place_parts
from tilewright.passes.memory.factor_concats import nest_concats
from tilewright.passes.precision.bf16_attention import round_attention
from tilewright.passes.precision.bf16_matmuls import lower_precision
from tilewright.passes.precision.pack_subbyte_constants import pack_constants
from tilewright.passes.precision.to_mixed_precision import lower_to_f16, short_sums
from tilewright.target.cpu import Target, host
from tilewright.target.target import Machine, kind_of

# What is added: before which pass, its name, and itself, which takes a machine and a log as well.
Lowering = tuple[tuple[str, str, Callable[..., Graph]], ...]
GRAPH_PASSES: tuple[GraphPass, ...] = (
    GraphPass("apply_checks", apply_checks, whole=True),
    GraphPass("decompose", decompose),
    GraphPass("eliminate_noop", eliminate_noop),
    GraphPass("fold_constants", fold_constants),
    GraphPass("simplify_control", simplify_control),
    GraphPass("simplify_loops", simplify_loops),
    GraphPass("merge_equal", merge_equal),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("simplify_algebra", simplify_algebra),
    GraphPass("absorb_pads", absorb_pads),
    GraphPass("trim_windows", trim_windows),
    GraphPass("look_up_rows", look_up_rows),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("choose_layouts", choose_layouts),
    GraphPass("sink_reshapes", sink_reshapes),
    GraphPass("join_tables", join_tables),
    GraphPass("split_matmuls", split_matmuls),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("fold_affine", fold_affine),
    GraphPass("split_groups", split_groups),
    GraphPass("winograd", winograd),
    GraphPass("separate_resizes", separate_resizes),
    GraphPass("sort_rows", sort_rows),
    GraphPass("sink_reshapes", sink_reshapes),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("form_attention", form_attention),
    GraphPass("share_heads", share_heads),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("pack_constants", pack_constants),
    GraphPass("distinct_outputs", distinct_outputs),
    GraphPass("nest_concats", nest_concats),
    GraphPass("place_parts", place_parts),
    GraphPass("fuse", fuse),
)


# What takes the place of another pass on GPUs.
ON_GPU: dict[str, tuple[GraphPass, ...]] = {
    "choose_layouts": (GraphPass("layouts_of_halves", layouts_of_halves),),
    "winograd": (GraphPass("pad_channels", pad_channels),),
    "form_attention": (GraphPass("tile_attention", tile_attention),),
    "share_heads": (
        GraphPass("join_heads", join_heads),
        GraphPass("stack_matmuls", stack_matmuls),
    ),
}
PASSES: dict[str, tuple[GraphPass, ...]] = {
    "cpu": GRAPH_PASSES,
    "gpu": tuple(chain.from_iterable(ON_GPU.get(p.name, (p,)) for p in GRAPH_PASSES)),
}

# Passes that take the machine as `target`; alone they decide for this one.
TARGETED = (winograd, tile_attention, join_heads, stack_matmuls)


def graph_passes(precision: str, target: Machine, log: PassLog) -> tuple[GraphPass, ...]:
    """The passes for a precision; what they decide for `target` is noted in `log`."""
    lowering = LOWERING[kind_of(target)].get(precision, ())
    passes = tuple(_noted(_for_target(p, target), log) for p in PASSES[kind_of(target)])
    for before, name, run in lowering:
        at = next(i for i, p in enumerate(passes) if p.name == before)
        passes = (*passes[:at], GraphPass(name, partial(run, target, log)), *passes[at:])
    return passes


def _for_target(p: GraphPass, target: Machine) -> GraphPass:
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
    return lower_precision(graph, host())[0]


def lower_to_f16_here(graph: Graph) -> Graph:
    """Compute in f16 from the first product on, if this machine can."""
    return lower_to_f16(graph, host())[0]


def _lower_precision(target: Target, log: PassLog, graph: Graph) -> Graph:
    """Compute products in bf16 where the machine gains by it; only where the user allows it."""
    result, decisions = lower_precision(graph, target)
    log.notes += map(str, decisions)
    return result


def _lower_to(dtype: DType, target: Machine, log: PassLog, graph: Graph) -> Graph:
    """Compute in a narrow type where the machine can; only where the user allows it."""
    result, decisions = lower_to_f16(graph, target, dtype)
    log.notes += map(str, decisions)
    return result


def round_attention_here(graph: Graph) -> Graph:
    """Compute the products of attention in bf16 where this machine gains by it."""
    return round_attention(graph, host())[0]


def _round_attention(target: Target, log: PassLog, graph: Graph) -> Graph:
    """Compute the products of attention in bf16; only where the user allows it."""
    result, decisions = round_attention(graph, target)
    log.notes += map(str, decisions)
    return result


def _short_sums(target: Target, log: PassLog, graph: Graph) -> Graph:
    """Let products of f16 sum a few terms at a time in f16."""
    return short_sums(graph) if target.computes_in_f16 else graph


def _eliminate_dead(target: Machine, log: PassLog, graph: Graph) -> Graph:
    """Remove the conversions that nobody reads any more."""
    return eliminate_dead(graph)


def _choose_layouts(target: Machine, log: PassLog, graph: Graph) -> Graph:
    """Channels last, where instructions on matrices read them 16 bytes at a time."""
    return choose_layouts(graph)


def _on_gpu(dtype: DType) -> Lowering:
    return (
        ("sink_reshapes", "choose_layouts", _choose_layouts),
        ("pad_channels", "lower_to_f16", partial(_lower_to, dtype)),
        ("pad_channels", "eliminate_dead", _eliminate_dead),
    )


# What a precision adds on each kind of machine, each before a pass. In bf16 only products that stay
# in f32 may still be computed by Winograd's method, which would lose bits of bf16.
LOWERING: dict[str, dict[str, Lowering]] = {
    "cpu": {
        "bf16": (
            ("winograd", "lower_precision", _lower_precision),
            ("share_heads", "round_attention", _round_attention),
        ),
        "fp16": (
            ("winograd", "lower_to_f16", partial(_lower_to, F16)),
            ("winograd", "eliminate_dead", _eliminate_dead),
            ("distinct_outputs", "short_sums", _short_sums),
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
    GraphPass("lower_precision", lower_precision_here),
    GraphPass("round_attention", round_attention_here),
    GraphPass("lower_to_f16", lower_to_f16_here),
    GraphPass("short_sums", short_sums),
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
