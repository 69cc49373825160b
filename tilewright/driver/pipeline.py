"""The graph passes of each kind of machine, in order.

A pass that depends on the machine or the precision asks its context, and returns the same graph
where it has nothing to do. The model's outputs keep their order; their names may change on the way,
so whoever needs the names that the model came with takes them before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from tilewright.core.errors import ConfigError
from tilewright.passes.algebra.block_scans import block_scans
from tilewright.passes.algebra.combine_parallel_matmuls import combine_parallel_matmuls
from tilewright.passes.algebra.cooperative_cumsum import cooperative_cumsum
from tilewright.passes.algebra.cooperative_topk import cooperative_topk
from tilewright.passes.algebra.fold_scale_bias import fold_scale_bias
from tilewright.passes.algebra.hoist_from_loops import hoist_from_loops
from tilewright.passes.algebra.merge_embedding_lookups import merge_embedding_lookups
from tilewright.passes.algebra.one_hot_matmul_to_gather import one_hot_matmul_to_gather
from tilewright.passes.algebra.prove_indices import prove_indices
from tilewright.passes.algebra.simplify_algebra import simplify_algebra
from tilewright.passes.algebra.split_matmuls import split_matmuls
from tilewright.passes.algebra.topk_to_sort import topk_to_sort
from tilewright.passes.attention.fold_repeat_kv import fold_repeat_kv
from tilewright.passes.attention.fuse_attention import fuse_attention
from tilewright.passes.attention.pack_gqa import pack_gqa
from tilewright.passes.canonicalize.cse import cse
from tilewright.passes.canonicalize.dce import dce
from tilewright.passes.canonicalize.decompose import decompose
from tilewright.passes.canonicalize.eliminate_noop import eliminate_noop
from tilewright.passes.canonicalize.fold_constants import fold_constants
from tilewright.passes.canonicalize.simplify_conditionals import simplify_conditionals
from tilewright.passes.canonicalize.simplify_loops import simplify_loops
from tilewright.passes.canonicalize.unify_dims import unify_dims
from tilewright.passes.context import Pass
from tilewright.passes.conv.conv_transpose_to_gemm import conv_transpose_to_gemm
from tilewright.passes.conv.drop_unread_pixels import drop_unread_pixels
from tilewright.passes.conv.fold_pad_into_conv import fold_pad_into_conv
from tilewright.passes.conv.narrow_integer_convs import narrow_integer_convs
from tilewright.passes.conv.pad_for_tensor_cores import pad_for_tensor_cores
from tilewright.passes.conv.separate_resizes import separate_resizes
from tilewright.passes.conv.skip_padding_taps import skip_padding_taps
from tilewright.passes.conv.split_conv_groups import split_conv_groups
from tilewright.passes.conv.trim_padding_taps import trim_padding_taps
from tilewright.passes.conv.winograd import winograd
from tilewright.passes.fuse import fuse
from tilewright.passes.layout.align_gemm_operands import align_gemm_operands
from tilewright.passes.layout.choose_layouts import choose_layouts
from tilewright.passes.layout.sink_reshapes import sink_reshapes
from tilewright.passes.manager import pass_name
from tilewright.passes.memory.copy_aliased_outputs import copy_aliased_outputs
from tilewright.passes.memory.eliminate_concat import eliminate_concat
from tilewright.passes.memory.factor_concats import factor_concats
from tilewright.passes.precision.bf16_activations import bf16_activations
from tilewright.passes.precision.bf16_attention import bf16_attention
from tilewright.passes.precision.bf16_matmuls import bf16_matmuls
from tilewright.passes.precision.f16_accumulation import f16_accumulation
from tilewright.passes.precision.flush_subnormals import flush_subnormals
from tilewright.passes.precision.pack_subbyte_constants import pack_subbyte_constants
from tilewright.passes.precision.to_mixed_precision import to_mixed_precision
from tilewright.target.target import Target, kind_of

FRONT: tuple[Pass, ...] = (
    unify_dims,
    decompose,
    eliminate_noop,
    fold_constants,
    simplify_conditionals,
    simplify_loops,
    hoist_from_loops,
    dce,
    simplify_loops,  # operands that are not read any more
    cse,
    dce,
    simplify_algebra,
    prove_indices,
    fold_pad_into_conv,
    trim_padding_taps,
    drop_unread_pixels,
    one_hot_matmul_to_gather,
    dce,
    choose_layouts,
    sink_reshapes,
    merge_embedding_lookups,
    split_matmuls,
    dce,
    fold_scale_bias,
    split_conv_groups,
)
BACK: tuple[Pass, ...] = (copy_aliased_outputs, factor_concats, eliminate_concat, fuse)
CPU: tuple[Pass, ...] = (
    conv_transpose_to_gemm,  # before decompose, which has another form
    *FRONT,
    flush_subnormals,
    bf16_matmuls,  # precision bf16
    bf16_activations,  # precision bf16
    to_mixed_precision,  # precision fp16
    dce,
    winograd,  # after bf16_matmuls: it would lose bits of bf16, so it takes what stays in f32
    skip_padding_taps,  # after fold_scale_bias, which changes weights
    separate_resizes,
    topk_to_sort,
    sink_reshapes,
    dce,
    fuse_attention,
    bf16_attention,  # precision bf16
    fold_repeat_kv,
    dce,
    pack_subbyte_constants,
    f16_accumulation,  # precision fp16
    *BACK,
)
GPU: tuple[Pass, ...] = (
    narrow_integer_convs,  # before fold_constants, which widens weights
    *FRONT,
    to_mixed_precision,  # precision fp16 or bf16
    dce,
    pad_for_tensor_cores,
    separate_resizes,
    cooperative_topk,  # before topk_to_sort, which sorts what is left
    topk_to_sort,
    block_scans,
    cooperative_cumsum,  # after block_scans, which makes rows of parts of a row
    sink_reshapes,
    dce,
    fuse_attention,
    fold_repeat_kv,
    pack_gqa,
    combine_parallel_matmuls,
    align_gemm_operands,  # after fuse_attention, whose products are not matmuls any more
    dce,
    pack_subbyte_constants,
    *BACK,
)
PIPELINES: dict[str, tuple[Pass, ...]] = {"cpu": CPU, "gpu": GPU}

# Passes that cannot be disabled, and why.
REQUIRED: dict[str, str] = {
    "decompose": "an operator that is defined by others has no loops of its own",
    "dce": "a group of operators that nobody reads has no outputs",
    "copy_aliased_outputs": "an output of a model needs memory of its own",
    "fuse": "code is generated for groups of operators",
}


def passes_for(target: Target, disabled: Iterable[str] = ()) -> tuple[Pass, ...]:
    """The passes that a model for `target` goes through, without those that are disabled."""
    left_out = set(disabled_passes(disabled))
    return tuple(p for p in PIPELINES[kind_of(target)] if pass_name(p) not in left_out)


def disabled_passes(names: Iterable[str]) -> tuple[str, ...]:
    """The names of passes to disable, each once and in order; an error for one that must run."""
    found = {pass_name(find_pass(name)) for name in names}
    for name in sorted(found & REQUIRED.keys()):
        raise ConfigError(
            "pass.required",
            f"the pass {name} cannot be disabled: {REQUIRED[name]}",
            help=f"every pass but {', '.join(REQUIRED)} can be",
        )
    return tuple(sorted(found))


def all_passes() -> dict[str, Pass]:
    """Every pass by name, in the order in which they first run."""
    return {pass_name(p): p for p in (*CPU, *GPU)}


def find_pass(name: str) -> Pass:
    """The pass called `name`, in which `-` is as good as `_`."""
    known = all_passes()
    name = name.replace("-", "_")
    if name not in known:
        raise ConfigError(
            "pass.unknown", f"no pass named {name!r}", help=f"one of {_near(name, known)}"
        )
    return known[name]


def _near(name: str, known: Collection[str]) -> str:
    return ", ".join(get_close_matches(name, known, 3) or known)
