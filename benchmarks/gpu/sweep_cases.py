"""Random products, convolutions, attentions and row kernels for `sweep.py`, and how they are drawn.

Sizes are drawn evenly on a logarithmic scale, half of them multiples of eight, as people choose
them. A drawing whose work is out of bounds is drawn again. Every case is an ONNX model for us and a
function of the same inputs and weights for torch.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import ml_dtypes
import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from random_case import Case

DTYPES: dict[str, tuple[Any, torch.dtype]] = {
    "f16": (np.float16, torch.float16),
    "bf16": (ml_dtypes.bfloat16, torch.bfloat16),
    "f32": (np.float32, torch.float32),
}
# Arithmetic operations and bytes of one case: a few microseconds to a few milliseconds.
MAX_WORK = {"f16": 1.5e12, "bf16": 1.5e12, "f32": 1e11}
MIN_BYTES, MAX_BYTES = 1 << 16, 1 << 29

Tensors = list[torch.Tensor]


def _everything(tensors: Tensors) -> Tensors:
    return tensors


@dataclass
class GpuCase:
    """A model and what torch computes for it.

    `part` takes as much of inputs and of a result as f64 can be asked for. Of images there is a
    `channels_last` model besides.
    """

    case: Case
    dtype: str
    torch: Callable[[Tensors, Tensors], torch.Tensor]
    part: Callable[[Tensors], Tensors] = _everything
    channels_last: Case | None = None

    @property
    def name(self) -> str:
        """What it is called in the table."""
        return f"{self.case.text} {self.dtype}"

    def within_bounds(self) -> bool:
        """Whether it is neither too small to time nor too large to repeat."""
        sizes = MIN_BYTES <= self.case.bytes <= MAX_BYTES
        return sizes and self.case.work <= MAX_WORK[self.dtype]


def _begin(random: Random, kind: str, dtypes: tuple[str, ...]) -> tuple[Case, str]:
    dtype = random.choice(dtypes)
    return Case(kind, random, dtype=np.dtype(DTYPES[dtype][0])), dtype


def _product(random: Random) -> GpuCase:
    """A product of two inputs, the second as it is or transposed; some with an activation."""
    case, dtype = _begin(random, "product", ("f16", "bf16", "f32"))
    m, n, k = case.size(1, 8192), case.size(16, 12288), case.size(16, 12288)
    transposed, relu = random.random() < 0.5, random.random() < 0.25
    x, w = case.input(m, k), case.input(*((n, k) if transposed else (k, n)))
    y = case.add("MatMul", x, case.add("Transpose", w, perm=[1, 0]) if transposed else w)
    if relu:
        case.add("Relu", y)
    case.work += 2.0 * m * n * k
    case.output(m, n)
    case.text = f"{m}x{n}x{k}{' nt' if transposed else ''}{' relu' if relu else ''}"

    def compute(given: Tensors, _: Tensors) -> torch.Tensor:
        y = given[0] @ (given[1].T if transposed else given[1])
        return torch.relu_(y) if relu else y

    return GpuCase(case, dtype, compute, lambda tensors: [tensors[0][:512], *tensors[1:]])


def _conv(random: Random) -> GpuCase:
    """A convolution of any window, stride, dilation, group and batch."""
    case, dtype = _begin(random, "conv", ("f16", "f16", "bf16", "f32"))
    window = random.choice((1, 1, 3, 3, 3, 5, 7))
    stride = random.choice((1, 1, 2))
    dilation = random.choice((1, 1, 1, 2)) if window > 1 else 1
    batch, side = case.size(1, 64), case.size(7, 128)
    groups = random.choice((1, 1, 1, 0, case.size(2, 32)))
    channels, filters = case.size(3, 768), case.size(8, 768)
    if groups == 0:
        groups = filters = channels
    elif groups > 1:
        each, wide = random.choice((4, 8, 16, 20, 32)), random.choice((4, 8, 16, 20, 32))
        channels, filters = groups * each, groups * wide
    how = (filters, window, stride, dilation, groups)
    shape = (batch, channels, side, side)
    case.conv(case.input(*shape), shape, *how)
    last = Case("conv", random, dtype=case.dtype)
    x = last.input(batch, side, side, channels)
    y, _ = last.conv(last.add("Transpose", x, perm=[0, 3, 1, 2]), shape, *how)
    last.add("Transpose", y, perm=[0, 2, 3, 1])
    words = (("s", stride), ("d", dilation), ("g", groups))
    case.text = f"b{batch} {channels}->{filters} {side}² {window}x{window}" + "".join(
        f" {word}{value}" for word, value in words if value > 1
    )
    pad = dilation * (window - 1) // 2

    def compute(given: Tensors, weights: Tensors) -> torch.Tensor:
        return F.conv2d(given[0], weights[0], weights[1], stride, pad, dilation, groups)

    return GpuCase(case, dtype, compute, lambda t: [t[0][:1], *t[1:]], channels_last=last)


def _attention(random: Random) -> GpuCase:
    """Attention with any head size up to 256, causal, with a mask, or grouped heads."""
    case, dtype = _begin(random, "attention", ("f16", "bf16"))
    case.opset = 23
    batch, kv_heads, shared = case.size(1, 16), case.size(1, 16), random.choice((1, 1, 1, 2, 4, 8))
    width = random.choice((32, 40, 64, 64, 80, 96, 128, 128, 160, 192, 256))
    queries, keys = case.size(16, 4096), case.size(16, 8192)
    hides = random.choice(("", "", "causal", "causal", "mask"))
    if hides == "causal":
        keys = queries
    if random.random() < 0.2:
        queries, hides = random.choice((1, 1, 4)), ""
    heads = kv_heads * shared
    q = case.input(batch, heads, queries, width)
    k, v = (case.input(batch, kv_heads, keys, width) for _ in range(2))
    mask = [case.input(batch, 1, queries, keys)] if hides == "mask" else []
    case.add("Attention", q, k, v, *mask, is_causal=int(hides == "causal"))
    case.output(batch, heads, queries, width)
    halved = 2 if hides == "causal" else 1
    case.work += 4.0 * batch * heads * queries * keys * width / halved
    case.text = (
        f"b{batch} h{heads}/{kv_heads} {queries}x{keys} d{width}{' ' if hides else ''}{hides}"
    )

    def compute(given: Tensors, _: Tensors) -> torch.Tensor:
        mask = given[3] if len(given) > 3 else None
        return F.scaled_dot_product_attention(
            *given[:3], attn_mask=mask, is_causal=hides == "causal", enable_gqa=shared > 1
        )

    def first_heads(tensors: Tensors) -> Tensors:
        return [tensors[0][:1, :shared], *(t[:1, :1] for t in tensors[1:])]

    return GpuCase(case, dtype, compute, first_heads)


def _row_shape(case: Case) -> tuple[int, int]:
    return case.size(1, 65536), case.size(8, 32768)


def _softmax(case: Case) -> Callable[[Tensors, Tensors], torch.Tensor]:
    shape = _row_shape(case)
    case.add("Softmax", case.input(*shape), axis=-1)
    case.output(*shape)
    case.text = f"softmax {shape[0]}x{shape[1]}"
    return lambda given, _: torch.softmax(given[0], -1)


def _layer_norm(case: Case) -> Callable[[Tensors, Tensors], torch.Tensor]:
    shape = _row_shape(case)
    x, scale, bias = case.input(*shape), case.weight(shape[1]), case.weight(shape[1])
    case.add("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-5)
    case.output(*shape)
    case.text = f"layer norm {shape[0]}x{shape[1]}"
    return lambda given, w: F.layer_norm(given[0], shape[1:], w[0], w[1], 1e-5)


def _reduction(case: Case) -> Callable[[Tensors, Tensors], torch.Tensor]:
    shape = (case.size(1, 256), case.size(4, 1024), case.size(4, 4096))
    axes = case.random.choice(([0], [1], [2], [0, 1], [1, 2], [0, 2]))
    word, function = case.random.choice((("Sum", torch.sum), ("Mean", torch.mean)))
    case.add(f"Reduce{word}", case.input(*shape), case.constant(np.array(axes)), keepdims=0)
    case.output(*(size for axis, size in enumerate(shape) if axis not in axes))
    case.text = f"{word.lower()} {'x'.join(map(str, shape))} over {axes}"
    return lambda given, _: function(given[0], axes)


def _transpose(case: Case) -> Callable[[Tensors, Tensors], torch.Tensor]:
    shape = (case.size(1, 64), case.size(4, 1024), case.size(4, 1024), case.size(2, 128))
    perm = case.random.choice(([0, 2, 1, 3], [0, 3, 1, 2], [0, 2, 3, 1], [3, 2, 1, 0]))
    case.add("Transpose", case.input(*shape), perm=perm)
    case.output(*shape)
    case.text = f"transpose {'x'.join(map(str, shape))} by {perm}"
    return lambda given, _: given[0].permute(perm).contiguous()


def _cumsum(case: Case) -> Callable[[Tensors, Tensors], torch.Tensor]:
    shape = _row_shape(case)
    case.add("CumSum", case.input(*shape), case.constant(np.array(1)))
    case.output(*shape)
    case.text = f"cumsum {shape[0]}x{shape[1]}"
    return lambda given, _: torch.cumsum(given[0], 1)


def _topk(case: Case) -> Callable[[Tensors, Tensors], torch.Tensor]:
    shape = _row_shape(case)
    count = min(shape[1], case.size(1, 64))
    case.add("TopK", case.input(*shape), case.constant(np.array([count])), unread=1)
    case.output(shape[0], count)
    case.text = f"top {count} of {shape[0]}x{shape[1]}"
    return lambda given, _: torch.topk(given[0], count).values


def _gather(case: Case) -> Callable[[Tensors, Tensors], torch.Tensor]:
    table, width, count = case.size(128, 65536), case.size(8, 4096), case.size(16, 65536)
    x, rows = case.input(table, width), case.indices(count, below=table)
    case.add("Gather", x, rows, axis=0)
    case.output(count, width)
    case.text = f"gather {count} of {table}x{width}"
    return lambda given, _: given[0].index_select(0, given[1])


ROW_KERNELS = (_softmax, _layer_norm, _reduction, _transpose, _cumsum, _topk, _gather, _reduction)


def _rows(random: Random) -> GpuCase:
    """A kernel that only moves bytes: norms, reductions, transposes, scans, top-k, gathers."""
    case, dtype = _begin(random, "rows", ("f16", "bf16", "f32", "f32"))
    compute = random.choice(ROW_KERNELS)(case)
    return GpuCase(case, dtype, compute)


KINDS: dict[str, Callable[[Random], GpuCase]] = {
    "product": _product,
    "conv": _conv,
    "attention": _attention,
    "rows": _rows,
}
COUNTS = {"product": 60, "conv": 60, "attention": 40, "rows": 40}


def draw(kind: str, seed: int, number: int) -> GpuCase:
    """A case of a kind: the same for the same seed and number."""
    random = Random(f"{kind} {seed} {number}")
    while True:
        case = KINDS[kind](random)
        if case.within_bounds():
            return case


def ranges(cases: list[GpuCase]) -> str:
    """The work and bytes that were drawn."""
    work = sorted(c.case.work for c in cases)
    moved = sorted(c.case.bytes for c in cases)
    return (
        f"{work[0] / 1e9:.3g} to {work[-1] / 1e9:.4g} GFLOP, "
        f"{moved[0] / 2**20:.2g} to {moved[-1] / 2**20:.4g} MiB, "
        f"intensity {min(map(_intensity, cases)):.2g} to {max(map(_intensity, cases)):.4g}"
    )


def _intensity(case: GpuCase) -> float:
    return case.case.work / max(case.case.bytes, 1)
