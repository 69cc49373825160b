"""The models of the golden kernels, in ONNX's text: see `cases.py`.

Each is there for a way of making kernels that no other one takes; `test_golden_kernels.py` checks
that together they reach every built-in rule.
"""

from __future__ import annotations

# One kernel each, or a few of one kind.
KERNELS: dict[str, str] = {
    "reduce_short_rows": """(float[4000, 9] x) => (float[4000] y)
        { a = Constant <value_ints=[1]> ()  y = ReduceMax <keepdims=0> (x, a) }""",
    "elementwise": """(float[N, 33] x, float[33] y) => (float[N, 33] z)
        { a = Add(x, y)  b = Sigmoid(a)  c = Exp(b)  z = Mul(c, x) }""",
    "math_functions": """(float[4, 100] x) => (float[4, 100] a, float[4, 100] b,
            float[4, 100] c, float[4, 100] d, float[4, 100] e) {
        a = Erf(x)  b = Tanh(x)  p = Abs(x)  c = Log(p)  d = Sin(x)  e = Pow(p, x) }""",
    "integers": """(int32[7, 40] x, int32[40] y) => (int32[7, 40] z)
        { a = Div(x, y)  b = Mod(x, y)  c = Mul(a, b)  z = BitShift <direction="LEFT"> (c, y) }""",
    "transposes": """(float[6, 70, 50] x) => (float[50, 6, 70] y, float[6, 50, 70] z)
        { y = Transpose <perm=[2, 0, 1]> (x)  a = Transpose <perm=[0, 2, 1]> (x)  z = Tanh(a) }""",
    "gather": """(float[100, 24] Table, int64[N, 5] i) => (float[N, 5, 24] y)
        { y = Gather <axis=0> (Table, i) }""",
    "scatter": """(float[20, 8] x, int64[5, 1] i, float[5, 8] u) => (float[20, 8] y)
        { y = ScatterND <reduction="add"> (x, i, u) }""",
    "concat_slice": """(float[N, 8] x, float[N, 24] y) => (float[N, 32] z, float[N, 16] w) {
        a = Relu(x)  b = Neg(y)  z = Concat <axis=1> (a, b)
        s = Constant <value_ints=[4]> ()  e = Constant <value_ints=[20]> ()
        d = Constant <value_ints=[1]> ()  c = Slice(y, s, e, d)  w = Exp(c) }""",
    "softmax": """(float[64, 1000] x) => (float[64, 1000] y) { y = Softmax <axis=-1> (x) }""",
    "softmax_f16": """(float16[64, 1000] x) => (float16[64, 1000] y)
        { y = Softmax <axis=-1> (x) }""",
    "rms_norm_bf16": """(bfloat16[32, 512] x) => (bfloat16[32, 512] y) {
        a = Constant <value_ints=[1]> ()  s = Mul(x, x)  m = ReduceMean(s, a)  r = Sqrt(m)
        y = Div(x, r) }""",
    "softmax_columns": """(float[8, 50, 12] x) => (float[8, 50, 12] y)
        { y = Softmax <axis=1> (x) }""",
    "softmax_dynamic": """(float[M, N] x) => (float[M, N] y) { y = Softmax <axis=-1> (x) }""",
    "layer_norm": """(float[128, 768] x, float[128, 768] r, float[768] S, float[768] B)
        => (float[128, 768] y) { a = Add(x, r)  y = LayerNormalization <axis=-1> (a, S, B) }""",
    "group_norm": """(float[2, 32, 14, 14] x, float[32] S, float[32] B)
        => (float[2, 32, 14, 14] y) { y = GroupNormalization <num_groups=4> (x, S, B) }""",
    "instance_norm": """(float[1, 16, 20, 20] x, float[16] S, float[16] B)
        => (float[1, 16, 20, 20] y) { y = InstanceNormalization(x, S, B) }""",
    "reduce_rows": """(float[512, 1000] x) => (float[512] y)
        { a = Constant <value_ints=[1]> ()  y = ReduceSum <keepdims=0> (x, a) }""",
    "reduce_columns": """(float[1000, 64] x) => (float[64] y)
        { a = Constant <value_ints=[0]> ()  y = ReduceMax <keepdims=0> (x, a) }""",
    "reduce_all": """(float[300, 400] x) => (float y) { y = ReduceMean <keepdims=0> (x) }""",
    "reduce_ends": """(float[9, 30, 11] x) => (float[30] y)
        { a = Constant <value_ints=[0, 2]> ()  y = ReduceSum <keepdims=0> (x, a) }""",
    "variance": """(float[40, 256] x) => (float[40, 1] y) {
        a = Constant <value_ints=[1]> ()  m = ReduceMean(x, a)  d = Sub(x, m)  s = Mul(d, d)
        y = ReduceMean(s, a) }""",
    "argmax": """(float[40, 300] x) => (int64[40] y) { y = ArgMax <axis=1, keepdims=0> (x) }""",
    "cumsum": """(float[16, 200] x) => (float[16, 200] y)
        { a = Constant <value_int=1> ()  y = CumSum(x, a) }""",
    "topk": """(float[10, 500] x) => (float[10, 7] v, int64[10, 7] i)
        { k = Constant <value_ints=[7]> ()  v, i = TopK <axis=1> (x, k) }""",
    "nonzero": """(float[9, 11] x) => (int64[2, N] y) { y = NonZero(x) }""",
    "max_pool": """(float[1, 32, 28, 28] x) => (float[1, 32, 14, 14] y)
        { y = MaxPool <kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]> (x) }""",
    "average_pool": """(float[2, 16, 15, 15] x) => (float[2, 16, 13, 13] y)
        { y = AveragePool <kernel_shape=[3, 3]> (x) }""",
    "global_pool": """(float[2, 96, 7, 7] x) => (float[2, 96, 1, 1] y)
        { y = GlobalAveragePool(x) }""",
    "resize_linear": """(float[1, 8, 12, 12] x) => (float[1, 8, 24, 24] y) {
        s = Constant <value_floats=[1.0, 1.0, 2.0, 2.0]> ()
        y = Resize <mode="linear"> (x, , s) }""",
    "grid_sample": """(float[1, 4, 10, 10] x, float[1, 6, 6, 2] g) => (float[1, 4, 6, 6] y)
        { y = GridSample <mode="linear", padding_mode="zeros"> (x, g) }""",
    "dft": """(float[2, 64, 1] x) => (float[2, 33, 2] y)
        { a = Constant <value_int=1> ()  y = DFT <onesided=1> (x, , a) }""",
    "einsum": """(float[3, 5, 7] x, float[7, 3, 11] y) => (float[5, 11] z)
        { z = Einsum <equation="abc,cad->bd"> (x, y) }""",
    "quantize": """(float[64, 64] x, float S, uint8 Z) => (float[64, 64] y)
        { q = QuantizeLinear(x, S, Z)  y = DequantizeLinear(q, S, Z) }""",
    "loop": """(float[4, 8] x, int64 n) => (float[4, 8] y) {
        c = Constant <value_int=1> ()  k = Cast <to=9> (c)
        y = Loop (n, k, x) <body = body (int64 i, bool go, float[4, 8] s)
            => (bool on, float[4, 8] t) { on = Identity(go)  a = Tanh(s)  t = Add(a, s) }> }""",
    "if": """(float[4, 8] x, bool c) => (float[4, 8] y) {
        y = If (c) <then_branch = t () => (float[4, 8] a) { a = Exp(x) },
                    else_branch = e () => (float[4, 8] b) { b = Neg(x) }> }""",
}

# GEMMs, convolutions, attention, recurrences, and small models of several.
MODELS: dict[str, str] = {
    "gemm": """(float[512, 512] x, float[512, 512] y) => (float[512, 512] z)
        { z = MatMul(x, y) }""",
    "gemm_weights": """(float[128, 768] x, float[768, 1024] W, float[1024] B)
        => (float[128, 1024] y) { a = MatMul(x, W)  b = Add(a, B)  y = Relu(b) }""",
    "gemm_transposed": """(float[96, 200] x, float[300, 200] y, float[300] B)
        => (float[96, 300] z) { z = Gemm <transB=1> (x, y, B) }""",
    "gemm_ragged": """(float[131, 67] x, float[67, 93] W) => (float[131, 93] y)
        { y = MatMul(x, W) }""",
    "gemm_deep": """(float[64, 8192] x, float[8192, 64] y) => (float[64, 64] z)
        { z = MatMul(x, y) }""",
    "gemm_dynamic": """(float[M, 256] x, float[256, 512] W, float[512] B) => (float[M, 512] y)
        { a = MatMul(x, W)  b = Add(a, B)  y = Sigmoid(b) }""",
    "gemv": """(float[1, 1024] x, float[1024, 512] W, float[512] B) => (float[1, 512] y)
        { a = MatMul(x, W)  y = Add(a, B) }""",
    "batched_gemm": """(float[12, 128, 64] x, float[12, 64, 128] y) => (float[12, 128, 128] z)
        { z = MatMul(x, y) }""",
    "gemm_int8": """(uint8[64, 256] x, int8[256, 128] W) => (int32[64, 128] y)
        { y = MatMulInteger(x, W) }""",
    "conv3x3": """(float[1, 64, 28, 28] x, float[64, 64, 3, 3] W, float[64] B)
        => (float[1, 64, 28, 28] y) { a = Conv <pads=[1, 1, 1, 1]> (x, W, B)  y = Relu(a) }""",
    "conv3x3_strided": """(float[1, 32, 30, 30] x, float[48, 32, 3, 3] W)
        => (float[1, 48, 15, 15] y) { y = Conv <pads=[1, 1, 1, 1], strides=[2, 2]> (x, W) }""",
    "conv7x7_stem": """(float[1, 3, 64, 64] x, float[32, 3, 7, 7] W)
        => (float[1, 32, 32, 32] y) { y = Conv <pads=[3, 3, 3, 3], strides=[2, 2]> (x, W) }""",
    "conv1x1": """(float[1, 96, 14, 14] x, float[160, 96, 1, 1] W)
        => (float[1, 160, 14, 14] y) { y = Conv(x, W) }""",
    "conv_dilated": """(float[2, 16, 20, 20] x, float[24, 16, 3, 3] W)
        => (float[2, 24, 16, 16] y) { y = Conv <dilations=[2, 2]> (x, W) }""",
    "conv_odd_filters": """(float[2, 40, 12, 12] x, float[41, 40, 3, 3] W, float[41] B)
        => (float[2, 41, 12, 12] y)
        { y = Conv <dilations=[2, 2], pads=[2, 2, 2, 2]> (x, W, B) }""",
    "conv_large_result": """(float[1, 4, 120, 120] x, float[88, 4, 3, 3] W, float[88] B)
        => (float[1, 88, 120, 120] y) { y = Conv <pads=[1, 1, 1, 1]> (x, W, B) }""",
    "conv_grouped": """(float[1, 64, 14, 14] x, float[64, 8, 3, 3] W)
        => (float[1, 64, 14, 14] y) { y = Conv <group=8, pads=[1, 1, 1, 1]> (x, W) }""",
    "conv_depthwise": """(float[1, 96, 56, 56] x, float[96, 1, 3, 3] W, float[96] B)
        => (float[1, 96, 56, 56] y)
        { a = Conv <group=96, pads=[1, 1, 1, 1]> (x, W, B)  y = Clip(a) }""",
    "conv1d": """(float[1, 40, 300] x, float[64, 40, 3] W) => (float[1, 64, 300] y)
        { y = Conv <pads=[1, 1]> (x, W) }""",
    "conv_transpose": """(float[1, 32, 14, 14] x, float[32, 16, 2, 2] W)
        => (float[1, 16, 28, 28] y) { y = ConvTranspose <strides=[2, 2]> (x, W) }""",
    "conv_qlinear": """(uint8[1, 16, 14, 14] x, float S, uint8 Z, int8[32, 16, 3, 3] W, float T,
            int8 Y, float R, uint8 Q) => (uint8[1, 32, 14, 14] y)
        { y = QLinearConv <pads=[1, 1, 1, 1]> (x, S, Z, W, T, Y, R, Q) }""",
    "attention": """(float[1, 8, 128, 64] q, float[1, 8, 64, 128] k, float[1, 8, 128, 64] v)
        => (float[1, 8, 128, 64] y) {
        c = Constant <value_float=0.125> ()  a = MatMul(q, k)  s = Mul(a, c)
        p = Softmax <axis=-1> (s)  y = MatMul(p, v) }""",
    "attention_causal": """(float[1, 4, 256, 64] q, float[1, 4, 64, 256] k,
            float[1, 4, 256, 64] v, float[256, 256] mask) => (float[1, 4, 256, 64] y) {
        a = MatMul(q, k)  s = Add(a, mask)  p = Softmax <axis=-1> (s)  y = MatMul(p, v) }""",
    "attention_decode": """(float[1, 8, 1, 64] q, float[1, 8, 64, T] k, float[1, 8, T, 64] v)
        => (float[1, 8, 1, 64] y)
        { a = MatMul(q, k)  p = Softmax <axis=-1> (a)  y = MatMul(p, v) }""",
    "lstm": """(float[20, 2, 64] x, float[1, 256, 64] W, float[1, 256, 64] R, float[1, 512] B)
        => (float[20, 1, 2, 64] y) { y = LSTM <hidden_size=64> (x, W, R, B) }""",
    "gru": """(float[10, 1, 32] x, float[2, 96, 32] W, float[2, 96, 32] R)
        => (float[10, 2, 1, 32] y)
        { y = GRU <hidden_size=32, direction="bidirectional"> (x, W, R) }""",
    "lstm_batch": """(float[8, 16, 128] x, float[1, 512, 128] W, float[1, 512, 128] R)
        => (float[8, 1, 16, 128] y) { y = LSTM <hidden_size=128> (x, W, R) }""",
    "residual_block": """(float[1, 64, 28, 28] x, float[64, 64, 3, 3] W, float[64, 64, 3, 3] V,
            float[64] S, float[64] B, float[64] M, float[64] D) => (float[1, 64, 28, 28] y) {
        v = Abs(D)  a = Conv <pads=[1, 1, 1, 1]> (x, W)  b = BatchNormalization(a, S, B, M, v)
        c = Relu(b)  d = Conv <pads=[1, 1, 1, 1]> (c, V)  e = Add(d, x)  y = Relu(e) }""",
    "inverted_residual": """(float[1, 24, 28, 28] x, float[144, 24, 1, 1] W,
            float[144, 1, 3, 3] V, float[36, 144, 1, 1] E, float[144, 36, 1, 1] F,
            float[24, 144, 1, 1] P) => (float[1, 24, 28, 28] y) {
        a = Conv(x, W)  b = HardSwish(a)  c = Conv <group=144, pads=[1, 1, 1, 1]> (b, V)
        d = HardSwish(c)  e = GlobalAveragePool(d)  f = Conv(e, E)  g = Relu(f)  h = Conv(g, F)
        i = Sigmoid(h)  j = Mul(d, i)  k = Conv(j, P)  y = Add(k, x) }""",
    "transformer_layer": """(float[1, 128, 256] x, float[256, 256] Wq, float[256, 256] Wk,
            float[256, 256] Wv, float[256, 256] Wo, float[256, 1024] W1, float[1024, 256] W2,
            float[1024] B1, float[256] B2, float[256] S, float[256] B)
        => (float[1, 128, 256] y) {
        n = LayerNormalization(x, S, B)  q0 = MatMul(n, Wq)  k0 = MatMul(n, Wk)
        v0 = MatMul(n, Wv)  sh = Constant <value_ints=[1, 128, 4, 64]> ()
        q1 = Reshape(q0, sh)  k1 = Reshape(k0, sh)  v1 = Reshape(v0, sh)
        q = Transpose <perm=[0, 2, 1, 3]> (q1)  k = Transpose <perm=[0, 2, 3, 1]> (k1)
        v = Transpose <perm=[0, 2, 1, 3]> (v1)  a = MatMul(q, k)
        c = Constant <value_float=0.125> ()  s = Mul(a, c)  p = Softmax <axis=-1> (s)
        o = MatMul(p, v)  o1 = Transpose <perm=[0, 2, 1, 3]> (o)
        sf = Constant <value_ints=[1, 128, 256]> ()  o2 = Reshape(o1, sf)  o3 = MatMul(o2, Wo)
        r = Add(o3, x)  m = LayerNormalization(r, S, B)  f = MatMul(m, W1)  g = Add(f, B1)
        h = Gelu(g)  i = MatMul(h, W2)  j = Add(i, B2)  y = Add(j, r) }""",
    "unet_step": """(float[1, 16, 32, 32] x, float[32, 16, 3, 3] W, float[32, 16, 2, 2] U,
            float[16, 32, 3, 3] V) => (float[1, 16, 32, 32] y) {
        a = Conv <pads=[1, 1, 1, 1]> (x, W)  b = Relu(a)
        c = MaxPool <kernel_shape=[2, 2], strides=[2, 2]> (b)
        d = ConvTranspose <strides=[2, 2]> (c, U)  e = Concat <axis=1> (d, x)
        f = Conv <pads=[1, 1, 1, 1]> (e, V)  y = Relu(f) }""",
    "dense_block": """(float[1, 32, 14, 14] x, float[16, 32, 3, 3] W, float[16, 48, 3, 3] V)
        => (float[1, 64, 14, 14] y) {
        a = Conv <pads=[1, 1, 1, 1]> (x, W)  b = Concat <axis=1> (x, a)  c = Relu(b)
        d = Conv <pads=[1, 1, 1, 1]> (c, V)  y = Concat <axis=1> (x, a, d) }""",
}

# Sizes at which a GPU chooses other kernels: persistent, stream-K, split-K, wide tiles.
GPU_MODELS: dict[str, str] = {
    "gemm_4096": """(float[4096, 4096] x, float[4096, 4096] y) => (float[4096, 4096] z)
        { z = MatMul(x, y) }""",
    "gemm_uneven_waves": """(float[1152, 8192] x, float[8192, 4096] y) => (float[1152, 4096] z)
        { z = MatMul(x, y) }""",
    "gemm_skinny": """(float[128, 3072] x, float[3072, 768] y, float[768] B)
        => (float[128, 768] z) { a = MatMul(x, y)  z = Add(a, B) }""",
    "gemm_thin": """(float[4, 4090] x, float[4096, 4090] y) => (float[4, 4096] z) {
        t = Transpose <perm=[1, 0]> (y)  a = MatMul(x, t)  z = Relu(a) }""",
    "gemm_epilogue": """(float[6304, 768] x, float[768, 3072] y, float[3072] B)
        => (float[6304, 3072] z) { a = MatMul(x, y)  b = Add(a, B)  z = Gelu(b) }""",
    "gemm_f16_persistent": """(float16[3072, 1024] x, float16[1024, 3072] y)
        => (float16[3072, 3072] z) { z = MatMul(x, y) }""",
    "gemm_f16_pingpong": """(float16[8192, 512] x, float16[512, 4096] y)
        => (float16[8192, 4096] z) { z = MatMul(x, y) }""",
    "gemm_f16_stream_k": """(float16[1152, 8192] x, float16[8192, 4096] y)
        => (float16[1152, 4096] z) { z = MatMul(x, y) }""",
    "attention_f16_d128": """(float16[2, 16, 2048, 128] q, float16[2, 16, 2048, 128] k,
            float16[2, 16, 2048, 128] v) => (float16[2, 16, 2048, 128] y) {
        t = Transpose <perm=[0, 1, 3, 2]> (k)  a = MatMul(q, t)  p = Softmax <axis=-1> (a)
        y = MatMul(p, v) }""",
    "gemm_int8_4096": """(uint8[4096, 4096] x, int8[4096, 4096] y) => (int32[4096, 4096] z)
        { z = MatMulInteger(x, y) }""",
    "conv_batch32": """(float[32, 128, 28, 28] x, float[128, 128, 3, 3] W)
        => (float[32, 128, 28, 28] y) { y = Conv <pads=[1, 1, 1, 1]> (x, W) }""",
    "conv_stem_batch32": """(float[32, 3, 224, 224] x, float[64, 3, 7, 7] W)
        => (float[32, 64, 112, 112] y) { y = Conv <pads=[3, 3, 3, 3], strides=[2, 2]> (x, W) }""",
    "attention_4096": """(float[1, 16, 4096, 64] q, float[1, 16, 64, 4096] k,
            float[1, 16, 4096, 64] v) => (float[1, 16, 4096, 64] y) {
        c = Constant <value_float=0.125> ()  a = MatMul(q, k)  s = Mul(a, c)
        p = Softmax <axis=-1> (s)  y = MatMul(p, v) }""",
    "attention_d128": """(float[2, 8, 1024, 128] q, float[2, 8, 128, 1024] k,
            float[2, 8, 1024, 128] v) => (float[2, 8, 1024, 128] y)
        { a = MatMul(q, k)  p = Softmax <axis=-1> (a)  y = MatMul(p, v) }""",
    "softmax_wide": """(float[8, 200000] x) => (float[8, 200000] y) { y = Softmax(x) }""",
    "reduce_long": """(float[16777216] x) => (float y) { y = ReduceMean <keepdims=0> (x) }""",
    "lstm_large": """(float[16, 1, 1024] x, float[1, 4096, 1024] w, float[1, 4096, 1024] r)
        => (float[16, 1, 1, 1024] y) { y = LSTM <hidden_size=1024> (x, w, r) }""",
}
