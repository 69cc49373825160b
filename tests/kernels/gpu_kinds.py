"""Every kind of GPU kernel, as small models: what `generations.py` compiles for each generation.

The models of the golden kernels, in every type that they have instructions for, and kinds that only
GPUs choose: attention of every head size, whole and with the keys split, products by size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.kernels.models import GPU_MODELS, KERNELS, MODELS

# ONNX's names of the types that a GPU computes in.
TYPES = {"f32": "float", "f16": "float16", "bf16": "bfloat16"}
# Products and what is around them are compiled as f32 models in these precisions.
PRECISIONS = ("f32", "tf32", "fp16", "bf16")
# Head sizes: multiples of 8 on both sides of each padded width.
HEADS = (32, 40, 64, 80, 96, 128, 136, 160, 192, 256)

# Kinds without 16-bit operands in ONNX, or with constants of f32.
ONLY_F32 = {"dft", "quantize", "loop", "if", "integers", "grid_sample", "resize_linear"}

_PRODUCTS = {
    "gemm_square": "(T[1024, 1024] x, T[1024, 1024] y) => (T[1024, 1024] z) { z = MatMul(x, y) }",
    "gemm_odd": "(T[1023, 515] x, T[515, 771] y) => (T[1023, 771] z) { z = MatMul(x, y) }",
    "gemm_odd_columns": """(T[640, 512] x, T[512, 1001] y, T[1001] b) => (T[640, 1001] z)
        { a = MatMul(x, y)  z = Add(a, b) }""",
    "gemm_16_rows": "(T[16, 4096] x, T[4096, 4096] W) => (T[16, 4096] z) { z = MatMul(x, W) }",
    "gemm_tall": "(T[65536, 64] x, T[64, 96] W) => (T[65536, 96] z) { z = MatMul(x, W) }",
    "gemm_split_k": "(T[128, 16384] x, T[16384, 128] y) => (T[128, 128] z) { z = MatMul(x, y) }",
    "gemm_left_transposed": """(T[768, 512] x, T[768, 640] y) => (T[512, 640] z)
        { a = Transpose <perm=[1, 0]> (x)  z = MatMul(a, y) }""",
    "gemm_both_transposed": """(T[768, 512] x, T[640, 768] y) => (T[512, 640] z)
        { a = Transpose <perm=[1, 0]> (x)  b = Transpose <perm=[1, 0]> (y)  z = MatMul(a, b) }""",
    "gemv_f16": "(T[1, 4096] x, T[4096, 1024] W) => (T[1, 1024] z) { z = MatMul(x, W) }",
    "depthwise_7x7": """(T[8, 96, 56, 56] x, T[96, 1, 7, 7] W) => (T[8, 96, 56, 56] y)
        { y = Conv <group=96, pads=[3, 3, 3, 3]> (x, W) }""",
    "depthwise_strided": """(T[8, 96, 56, 56] x, T[96, 1, 3, 3] W) => (T[8, 96, 28, 28] y)
        { y = Conv <group=96, pads=[1, 1, 1, 1], strides=[2, 2]> (x, W) }""",
    "conv_channels_last": """(T[4, 28, 28, 64] x, T[96, 64, 3, 3] W) => (T[4, 28, 28, 96] y) {
        a = Transpose <perm=[0, 3, 1, 2]> (x)  b = Conv <pads=[1, 1, 1, 1]> (a, W)
        y = Transpose <perm=[0, 2, 3, 1]> (b) }""",
    "conv_grouped_wide": """(T[4, 128, 28, 28] x, T[128, 32, 3, 3] W) => (T[4, 128, 28, 28] y)
        { y = Conv <group=4, pads=[1, 1, 1, 1]> (x, W) }""",
    "conv_odd_channels": """(T[4, 20, 33, 33] x, T[51, 20, 3, 3] W) => (T[4, 51, 17, 17] y)
        { y = Conv <pads=[1, 1, 1, 1], strides=[2, 2]> (x, W) }""",
}
_ROWS = {
    "sort": """(T[64, 300] x) => (T[64, 300] v, int64[64, 300] i)
        { k = Constant <value_ints=[300]> ()  v, i = TopK <axis=1> (x, k) }""",
    "layer_norm_wide": """(T[64, 8192] x, T[8192] S, T[8192] B) => (T[64, 8192] y)
        { y = LayerNormalization <axis=-1> (x, S, B) }""",
    "softmax_odd": "(T[300, 771] x) => (T[300, 771] y) { y = Softmax <axis=-1> (x) }",
    "transpose_last": "(T[500, 700] x) => (T[700, 500] y) { y = Transpose <perm=[1, 0]> (x) }",
    "cumsum_long": """(T[4, 20000] x) => (T[4, 20000] y)
        { a = Constant <value_int=1> ()  y = CumSum(x, a) }""",
}
_INTEGERS = {
    "gemm_i8i8": """(int8[640, 768] x, int8[768, 512] W) => (int32[640, 512] y)
        { y = MatMulInteger(x, W) }""",
    "conv_u8i8": """(uint8[4, 64, 28, 28] x, float S, uint8 Z, int8[128, 64, 3, 3] W, float T,
            int8 Y, float R, uint8 Q) => (uint8[4, 128, 28, 28] y)
        { y = QLinearConv <pads=[1, 1, 1, 1]> (x, S, Z, W, T, Y, R, Q) }""",
    "conv_i8i8_odd": """(int8[2, 21, 33, 33] x, int8[51, 21, 3, 3] W) => (int32[2, 51, 17, 17] y)
        { y = ConvInteger <pads=[1, 1, 1, 1], strides=[2, 2]> (x, W) }""",
    "gemm_u8u8_odd": """(uint8[131, 77] x, uint8[77, 93] W) => (int32[131, 93] y)
        { y = MatMulInteger(x, W) }""",
}


@dataclass(frozen=True)
class Kind:
    """A kind of kernel: a model in ONNX's text, and the precision that it is compiled in."""

    name: str
    text: str
    precision: str = "f32"
    opset: int = 21


def all_kinds() -> tuple[Kind, ...]:
    """The whole table."""
    return (*_typed(), *_products(), *_attention())


def _typed() -> list[Kind]:
    """Models without products, in every type."""
    rows = {**{name: _general(text) for name, text in KERNELS.items()}, **_ROWS}
    found = []
    for name, text in rows.items():
        if not re.search(r"\bT\[|\bT ", text) or name in ONLY_F32:
            found.append(Kind(name, _of_type(text, "f32")))
            continue
        if name.endswith(("_f16", "_bf16")):
            continue
        found += [Kind(f"{name} {dtype}", _of_type(text, dtype)) for dtype in TYPES]
    return found


def _products() -> list[Kind]:
    """Products, in every precision; in 16 bits also between operands of that type."""
    found = [Kind(name, text) for name, text in _INTEGERS.items()]
    for name, text in {**MODELS, **GPU_MODELS}.items():
        narrow = "float[" not in text
        found += [
            Kind(name if narrow else f"{name} {p}", text, p)
            for p in (PRECISIONS[:1] if narrow else PRECISIONS)
        ]
    for name, text in _PRODUCTS.items():
        found += [Kind(f"{name} {dtype}", _of_type(text, dtype)) for dtype in TYPES]
        found.append(Kind(f"{name} tf32", _of_type(text, "f32"), "tf32"))
    return found


def _attention() -> list[Kind]:
    """Attention between operands of 16 bits: plain, causal, masked, and with the keys split."""
    ways = (("plain", 512, 1024), ("causal", 512, 512), ("masked", 512, 1024), ("decode", 1, 1024))
    return [
        Kind(f"attention {way} d{d} {dtype}", _of_type(_attention_text(*sizes, d), dtype), opset=23)
        for dtype in ("f16", "bf16")
        for d in HEADS
        for sizes in ways
        for way in sizes[:1]
    ]


def _attention_text(way: str, queries: int, keys: int, d: int) -> str:
    operands = f"T[4, 8, {queries}, {d}] q, T[4, 8, {keys}, {d}] k, T[4, 8, {keys}, {d}] v"
    more = f", T[4, 1, {queries}, {keys}] m" if way == "masked" else ""
    given = "q, k, v, m" if more else "q, k, v"
    how = "<is_causal=1>" if way == "causal" else ""
    head = f"({operands}{more}) => (T[4, 8, {queries}, {d}] y)"
    return f"{head} {{ y = Attention {how} ({given}) }}"


def _general(text: str) -> str:
    return re.sub(r"\bfloat\b(?=\[| )", "T", text)


def _of_type(text: str, dtype: str) -> str:
    return re.sub(r"\bT\b(?=\[| )", TYPES[dtype], text)
