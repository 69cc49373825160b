"""Every kind of GPU kernel as a model small enough for compute-sanitizer, see `sanitize.py`.

Kernels are chosen by size: what only large problems get, as persistent blocks, comes of a GPU of
few SMs here. `T` is each of the types of a table, or f32 in that precision.
Inputs with a capital letter are weights.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tests.kernels.gpu_kinds import TYPES, Kind
from tests.kernels.models import KERNELS, MODELS

# So few SMs that persistent blocks have several tiles of a small problem.
FEW = 4


@dataclass(frozen=True)
class Watched:
    """A kind of kernel, and the SMs of the GPU that it is compiled for, 0 for all there are."""

    kind: Kind
    sms: int = 0

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.kind.name}, {self.sms} SMs" if self.sms else self.kind.name


# M, N, K; the second operand is transposed in half of them.
_PRODUCTS = {
    "whole": (256, 256, 256),
    "edges": (200, 136, 72),
    "deep edges": (136, 200, 456),
    "odd": (67, 45, 33),
    "fours": (66, 44, 36),
    "few rows": (4, 513, 1026),
    "aligned few rows": (4, 512, 2048),
    "deep": (64, 64, 4096),
}
# These and the ones below it on few SMs.
_LARGE = {
    "ping pong": (1024, 768, 128),
    "ping pong edges": (1000, 752, 144),
    "persistent": (640, 384, 2048),
    "stream k": (640, 256, 4096),
    "stream k edges": (600, 248, 4104),
    "wide": (384, 256, 1024),
    "large deep": (136, 200, 456),
    "large few rows": (4, 513, 1026),
}
_TYPED = {
    "left transposed": """(T[264, 136] x, T[264, 72] y) => (T[136, 72] z)
        { z = Gemm <transA=1> (x, y) }""",
    "batched": "(T[3, 70, 40] x, T[3, 40, 72] y) => (T[3, 70, 72] z) { z = MatMul(x, y) }",
    "one row": "(T[1, 512] x, T[512, 512] W) => (T[1, 512] z) { z = MatMul(x, W) }",
    "epilogue": """(T[130, 96] x, T[96, 72] W, T[72] B, T[130, 72] r) => (T[130, 72] z)
        { a = MatMul(x, W)  b = Add(a, B)  c = Gelu(b)  z = Add(c, r) }""",
    "conv": """(T[2, 24, 14, 14] x, T[40, 24, 3, 3] W) => (T[2, 40, 14, 14] y)
        { y = Conv <pads=[1, 1, 1, 1]> (x, W) }""",
    "conv odd": """(T[2, 20, 17, 17] x, T[51, 20, 3, 3] W, T[51] B) => (T[2, 51, 9, 9] y)
        { a = Conv <pads=[1, 1, 1, 1], strides=[2, 2]> (x, W, B)  y = Relu(a) }""",
    "conv stem": """(T[1, 3, 40, 40] x, T[32, 3, 7, 7] W) => (T[1, 32, 20, 20] y)
        { y = Conv <pads=[3, 3, 3, 3], strides=[2, 2]> (x, W) }""",
    "conv dilated": """(T[2, 16, 20, 20] x, T[24, 16, 3, 3] W) => (T[2, 24, 16, 16] y)
        { y = Conv <dilations=[2, 2]> (x, W) }""",
    "conv channels last": """(T[2, 14, 14, 64] x, T[96, 64, 3, 3] W) => (T[2, 14, 14, 96] y) {
        a = Transpose <perm=[0, 3, 1, 2]> (x)  b = Conv <pads=[1, 1, 1, 1]> (a, W)
        y = Transpose <perm=[0, 2, 3, 1]> (b) }""",
    "conv grouped": """(T[2, 64, 14, 14] x, T[64, 8, 3, 3] W) => (T[2, 64, 14, 14] y)
        { y = Conv <group=8, pads=[1, 1, 1, 1]> (x, W) }""",
    "conv grouped wide": """(T[2, 128, 14, 14] x, T[128, 32, 3, 3] W) => (T[2, 128, 14, 14] y)
        { y = Conv <group=4, pads=[1, 1, 1, 1]> (x, W) }""",
    "conv pointwise": """(T[2, 96, 10, 10] x, T[72, 96, 1, 1] W) => (T[2, 72, 10, 10] y)
        { y = Conv(x, W) }""",
    "depthwise": """(T[2, 24, 28, 28] x, T[24, 1, 3, 3] W, T[24] B) => (T[2, 24, 28, 28] y)
        { y = Conv <group=24, pads=[1, 1, 1, 1]> (x, W, B) }""",
    "depthwise channels last": """(T[2, 28, 28, 24] x, T[24, 1, 7, 7] W) => (T[2, 14, 14, 24] y) {
        a = Transpose <perm=[0, 3, 1, 2]> (x)
        b = Conv <group=24, pads=[3, 3, 3, 3], strides=[2, 2]> (a, W)
        y = Transpose <perm=[0, 2, 3, 1]> (b) }""",
    "conv transpose": """(T[1, 32, 9, 9] x, T[32, 16, 2, 2] W) => (T[1, 16, 18, 18] y)
        { y = ConvTranspose <strides=[2, 2]> (x, W) }""",
}
_INTEGERS = {
    "i8": "(int8[64, 96] x, int8[96, 48] W) => (int32[64, 48] y) { y = MatMulInteger(x, W) }",
    "u8i8 odd": """(uint8[67, 77] x, int8[77, 45] W) => (int32[67, 45] y)
        { y = MatMulInteger(x, W) }""",
    "zero points": """(int8[64, 80] x, int8[80, 48] W, int8 A, int8[48] B) => (int32[64, 48] y)
        { y = MatMulInteger(x, W, A, B) }""",
    "u8 given": """(uint8[67, 80] x, uint8[80, 48] y) => (int32[67, 48] z)
        { z = MatMulInteger(x, y) }""",
    "u8i8 large": """(uint8[512, 256] x, int8[256, 384] W) => (int32[512, 384] y)
        { y = MatMulInteger(x, W) }""",
    "conv u8i8": """(uint8[2, 32, 14, 14] x, float S, uint8 Z, int8[40, 32, 3, 3] W, float T,
        int8 Y, float R, uint8 Q) => (uint8[2, 40, 14, 14] y)
        { y = QLinearConv <pads=[1, 1, 1, 1]> (x, S, Z, W, T, Y, R, Q) }""",
    "conv i8 odd": """(int8[2, 21, 17, 17] x, int8[51, 21, 3, 3] W) => (int32[2, 51, 9, 9] y)
        { y = ConvInteger <pads=[1, 1, 1, 1], strides=[2, 2]> (x, W) }""",
}
# Batch, heads, those of keys, queries, keys, their size; a causal mask or one that is given.
_ATTENTIONS: tuple[tuple[int, int, int, int, int, int, str], ...] = (
    (1, 2, 2, 128, 128, 64, ""),
    (2, 2, 2, 200, 333, 32, ""),
    (1, 2, 2, 129, 257, 96, "masked"),
    (1, 2, 2, 200, 200, 80, "causal"),
    (1, 4, 1, 100, 100, 128, "causal"),
    (1, 2, 2, 70, 130, 256, ""),
    (1, 8, 2, 1, 1000, 128, ""),
    (1, 2, 2, 16, 1000, 64, ""),
    (1, 2, 2, 4, 700, 40, "masked"),
)
_LARGE_ATTENTIONS: tuple[tuple[int, int, int, int, int, int, str], ...] = (
    (1, 4, 4, 256, 256, 64, ""),
    (1, 4, 4, 384, 384, 128, "causal"),
    (1, 4, 2, 200, 333, 80, ""),
    (1, 4, 4, 200, 333, 192, "masked"),
    (1, 4, 4, 300, 300, 256, "causal"),
    (1, 4, 4, 264, 264, 40, "causal"),
)
# In f32.
_SIMT_ATTENTIONS: tuple[tuple[int, int, int, int, int, int, str], ...] = (
    (1, 4, 2, 200, 333, 64, ""),
    (1, 4, 4, 256, 256, 40, "causal"),
    (1, 4, 4, 130, 200, 36, "masked"),
)
_ROWS = {
    "softmax odd": "(T[30, 771] x) => (T[30, 771] y) { y = Softmax <axis=-1> (x) }",
    "softmax wide": "(T[2, 40000] x) => (T[2, 40000] y) { y = Softmax <axis=-1> (x) }",
    "layer norm": """(T[30, 768] x, T[768] S, T[768] B) => (T[30, 768] y)
        { y = LayerNormalization <axis=-1> (x, S, B) }""",
    "layer norm wide": """(T[5, 8200] x, T[8200] S, T[8200] B) => (T[5, 8200] y)
        { y = LayerNormalization <axis=-1> (x, S, B) }""",
    "sum of many": "(T[200000] x) => (T y) { y = ReduceSum <keepdims=0> (x) }",
    "sum of few rows": """(T[3, 50000] x) => (T[3] y)
        { a = Constant <value_ints=[1]> ()  y = ReduceSum <keepdims=0> (x, a) }""",
    "sum of columns": """(T[500, 33] x) => (T[33] y)
        { a = Constant <value_ints=[0]> ()  y = ReduceSum <keepdims=0> (x, a) }""",
    "sum of long columns": """(T[9000, 40] x) => (T[40] y)
        { a = Constant <value_ints=[0]> ()  y = ReduceSum <keepdims=0> (x, a) }""",
    "sum of many columns": """(T[20, 3000] x) => (T[3000] y)
        { a = Constant <value_ints=[0]> ()  y = ReduceSum <keepdims=0> (x, a) }""",
    "sum of the middle": """(T[5, 70, 66] x) => (T[5, 66] y)
        { a = Constant <value_ints=[1]> ()  y = ReduceSum <keepdims=0> (x, a) }""",
    "sum over two axes": """(T[40, 30, 50] x) => (T[30] y)
        { a = Constant <value_ints=[0, 2]> ()  y = ReduceSum <keepdims=0> (x, a) }""",
    "cumsum": """(T[6, 700] x) => (T[6, 700] y)
        { a = Constant <value_int=1> ()  y = CumSum(x, a) }""",
    "cumsum long": """(T[2, 20000] x) => (T[2, 20000] y)
        { a = Constant <value_int=1> ()  y = CumSum(x, a) }""",
    "cumsum of columns": """(T[700, 66] x) => (T[700, 66] y)
        { a = Constant <value_int=0> ()  y = CumSum(x, a) }""",
    "top 7": """(T[10, 500] x) => (T[10, 7] v, int64[10, 7] i)
        { k = Constant <value_ints=[7]> ()  v, i = TopK <axis=1> (x, k) }""",
    "top 50 of many": """(T[2, 30000] x) => (T[2, 50] v, int64[2, 50] i)
        { k = Constant <value_ints=[50]> ()  v, i = TopK <axis=1> (x, k) }""",
    "sort": """(T[5, 300] x) => (T[5, 300] v, int64[5, 300] i)
        { k = Constant <value_ints=[300]> ()  v, i = TopK <axis=1> (x, k) }""",
    "transpose": "(T[130, 70] x) => (T[70, 130] y) { y = Transpose <perm=[1, 0]> (x) }",
    "transpose odd": "(T[3, 67, 45] x) => (T[45, 3, 67] y) { y = Transpose <perm=[2, 0, 1]> (x) }",
    "gather": "(T[100, 21] x, int64[40] i) => (T[40, 21] y) { y = Gather <axis=0> (x, i) }",
    "gather rows": "(T[100, 64] x, int64[40] i) => (T[40, 64] y) { y = Gather <axis=0> (x, i) }",
}
_RECURRENCES = {
    "lstm": MODELS["lstm"],
    "gru": MODELS["gru"],
    "lstm batch": MODELS["lstm_batch"],
    "lstm one": """(float[6, 1, 256] x, float[1, 1024, 256] W, float[1, 1024, 256] R)
        => (float[6, 1, 1, 256] y) { y = LSTM <hidden_size=256> (x, W, R) }""",
    "lstm groups of rows": """(float[4, 32, 256] x, float[1, 1024, 256] W, float[1, 1024, 256] R)
        => (float[4, 1, 32, 256] y) { y = LSTM <hidden_size=256> (x, W, R) }""",
    "gru batch": """(float[6, 12, 64] x, float[1, 384, 64] W, float[1, 384, 128] R)
        => (float[6, 1, 12, 128] y) { y = GRU <hidden_size=128> (x, W, R) }""",
}


def all_watched() -> tuple[Watched, ...]:
    """The whole table."""
    return (
        *_of_types({n: _product(*s) for n, s in _PRODUCTS.items()}, ("f16", "f32")),
        *_of_types({n: _product(*s) for n, s in _LARGE.items()}, ("bf16", "tf32"), FEW),
        *_of_types(_TYPED, ("f16", "f32")),
        *_of_types(_TYPED, ("f16", "f32"), FEW),
        *(Watched(Kind(name, text)) for name, text in _INTEGERS.items()),
        *(Watched(Kind(name, text), FEW) for name, text in _INTEGERS.items() if "large" in name),
        *_of_types(dict(map(_attention, _ATTENTIONS)), ("f16",)),
        *_of_types(dict(map(_attention, _LARGE_ATTENTIONS)), ("bf16",), FEW),
        *_of_types(dict(map(_attention, _SIMT_ATTENTIONS)), ("f32",), FEW),
        *_of_types(_ROWS, ("f32", "f16")),
        *(Watched(Kind(n, KERNELS[n])) for n in KERNELS if "float[" in KERNELS[n]),
        *(
            Watched(Kind(f"{name} {precision}", text, precision))
            for name, text in _RECURRENCES.items()
            for precision in ("f32", "fp16")
        ),
    )


def _of_types(models: Mapping[str, str], types: Sequence[str], sms: int = 0) -> Iterator[Watched]:
    """Each model in each type; TF32 is a precision of f32."""
    for name, text in models.items():
        for dtype in types:
            own = re.sub(r"\bT\b(?=\[| )", TYPES.get(dtype, "float"), text)
            precision = "f32" if dtype in TYPES else dtype
            opset = 23 if "Attention" in text else 21
            yield Watched(Kind(f"{name} {dtype}", own, precision, opset), sms)


def _product(m: int, n: int, k: int) -> str:
    """A product with a matrix as it is, and with another that is transposed."""
    head = f"(T[{m}, {k}] x, T[{k}, {n}] y, T[{n}, {k}] z) => (T[{m}, {n}] a, T[{m}, {n}] b)"
    return f"{head} {{ a = MatMul(x, y)  b = Gemm <transB=1> (x, z) }}"


def _attention(sizes: tuple[int, int, int, int, int, int, str]) -> tuple[str, str]:
    """The name and the model of an attention."""
    batch, heads, shared, queries, keys, size, way = sizes
    kv = f"T[{batch}, {shared}, {keys}, {size}]"
    more = f", T[{batch}, 1, {queries}, {keys}] m" if way == "masked" else ""
    result = f"T[{batch}, {heads}, {queries}, {size}]"
    how = "<is_causal=1>" if way == "causal" else ""
    given = "q, k, v, m" if more else "q, k, v"
    name = f"attention {batch} {heads} {shared} {queries} {keys} {size} {way}".rstrip()
    head = f"({result} q, {kv} k, {kv} v{more}) => ({result} y)"
    return name, f"{head} {{ y = Attention {how} ({given}) }}"
