"""Recurrent models in the form that tf2onnx gives those of Keras and TensorFlow, in small.

Counters, limits and weights are carried, counters compared as floats, gates are operators, and the
results of all steps are scan outputs. Weights are initializers, random by name.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from tests.frontends.onnx.segments.segmented_models import parsed

FEATURES, UNITS, WORDS = 3, 5, 7

# One step further, and whether the counter is below the limit.
COUNT = """
        one = Constant <value = int32 {1}> ()
        t1 = Add (t, one)
        a1 = Cast <to = 1> (t1)
        b1 = Cast <to = 1> (limit)
        l1 = Less (a1, b1)
        a0 = Cast <to = 1> (i)
        l0 = Less (a0, b1)
        going = And (l0, l1)
"""

# A state is kept where the mask says so: tf2onnx writes a choice as a sum of products.
MASKED_LSTM = f"""
    lstm (int64 i, bool cond, int32 t, float[n, u] s, float[n, u] h, float[n, u] c, float[d, g] k)
        => (bool going, int32 t1, float[n, u] s1, float[n, u] h1, float[n, u] c1, float[d, g] k,
            float[n, u] row) {{
        {COUNT}
        here = Gather <axis = 0> (steps, t)
        active = Gather <axis = 0> (mask, t)
        xk = MatMul (here, k)
        r = MatMul (h, lstm_recurrent)
        xr = Add (xk, r)
        sums = Add (xr, lstm_bias)
        si, sf, sc, so = Split <axis = 1, num_outputs = 4> (sums)
        gi = Sigmoid (si)
        gf = Sigmoid (sf)
        gc = Tanh (sc)
        go = Sigmoid (so)
        kept = Mul (gf, c)
        taken = Mul (gi, gc)
        cell = Add (kept, taken)
        seen = Tanh (cell)
        out = Mul (go, seen)
        yes = Cast <to = 1> (active)
        not_active = Not (active)
        no = Cast <to = 1> (not_active)
        y_new = Mul (yes, out)
        y_old = Mul (s, no)
        row = Add (y_new, y_old)
        s1 = Identity (row)
        h_new = Mul (yes, out)
        h_old = Mul (h, no)
        h1 = Add (h_new, h_old)
        c_new = Mul (yes, cell)
        c_old = Mul (c, no)
        c1 = Add (c_new, c_old)
    }}
"""

GRU = f"""
    gru (int64 i, bool cond, int32 t, float[n, u] h) => (bool going, int32 t1, float[n, u] h1,
        float[n, u] row) {{
        {COUNT}
        here = Gather <axis = 0> (turned, t)
        xk = MatMul (here, gru_kernel)
        xb = Add (xk, gru_bias)
        xz, xr, xh = Split <axis = -1, num_outputs = 3> (xb)
        r = MatMul (h, gru_recurrent)
        rb = Add (r, gru_late_bias)
        rz, rr, rh = Split <axis = -1, num_outputs = 3> (rb)
        sz = Add (xz, rz)
        z = Sigmoid (sz)
        sr = Add (xr, rr)
        reset = Sigmoid (sr)
        product = Mul (reset, rh)
        sh = Add (xh, product)
        candidate = Tanh (sh)
        one_f = Constant <value = float {{1}}> ()
        rest = Sub (one_f, z)
        old = Mul (z, h)
        new = Mul (rest, candidate)
        row = Add (old, new)
        h1 = Identity (row)
    }}
"""

BEGIN = """
    zero = Constant <value = int32 {0}> ()
    shape = Shape <start = 1, end = 2> (x)
    limit64 = Squeeze (shape)
    limit = Cast <to = 6> (limit64)
    zero_f = Cast <to = 1> (zero)
    limit_f = Cast <to = 1> (limit)
    begin = Less (zero_f, limit_f)
    batch = Shape <start = 0, end = 1> (x)
    units = Constant <value_ints = [5]> ()
    state_shape = Concat <axis = 0> (batch, units)
    nothing = Constant <value = float {0}> ()
    state = Expand (nothing, state_shape)
    steps = Transpose <perm = [1, 0, 2]> (x)
"""

# Two layers: an LSTM with a mask, and behind it a GRU that goes backward.
LAYERS = f"""
g (float[n, t, 3] x, bool[n, t] valid) => (float[n, t, 5] y, float[n, 5] last) {{
    {BEGIN}
    axis = Constant <value_ints = [2]> ()
    column = Unsqueeze (valid, axis)
    mask = Transpose <perm = [1, 0, 2]> (column)
    c0, y0, h0, cell0, k0, rows = Loop <body = {MASKED_LSTM}> (
        limit64, begin, zero, state, state, state, lstm_kernel)
    counts = Expand (limit64, batch)
    turned = ReverseSequence <batch_axis = 1, time_axis = 0> (rows, counts)
    c2, last, back = Loop <body = {GRU}> (, begin, zero, state)
    y = Transpose <perm = [1, 0, 2]> (back)
}}"""

# A decoder that looks at all steps and feeds its best word back; each step's result is joined.
DECODER = """
g (float[n, t, 5] states, int32 limit) => (float[n, m, 7] y, int32 count) {
    zero = Constant <value = int32 {0}> ()
    begin = Less (zero, limit)
    most = Constant <value = int64 {9}> ()
    batch = Shape <start = 0, end = 1> (states)
    units = Constant <value_ints = [5]> ()
    state_shape = Concat <axis = 0> (batch, units)
    nothing = Constant <value = float {0}> ()
    state = Expand (nothing, state_shape)
    none = Constant <value_ints = [0, 7]> ()
    none_shape = Concat <axis = 0> (batch, none)
    empty = Expand (nothing, none_shape)
    no_word = Constant <value = int64 {0}> ()
    first = Expand (no_word, batch)
    last = Constant <value_ints = [2]> ()
    middle = Constant <value_ints = [1]> ()
    count, w9, h9, y = Loop <body = decoder
        (int64 i, bool cond, int32 t, int64[n] word, float[n, u] h, float[n, m, v] ys)
        => (bool going, int32 t1, int64[n] word1, float[n, u] h1, float[n, m, v] ys1) {
        one = Constant <value = int32 {1}> ()
        t1 = Add (t, one)
        going = Less (t1, limit)
        query = MatMul (h, query_kernel)
        column = Unsqueeze (query, last)
        scores = MatMul (states, column)
        weights = Softmax <axis = 1> (scores)
        weighted = Mul (states, weights)
        seen = ReduceSum <keepdims = 0> (weighted, middle)
        embedded = Gather <axis = 0> (table, word)
        joined = Concat <axis = 1> (embedded, seen, h)
        sums = MatMul (joined, decoder_kernel)
        h1 = Tanh (sums)
        logits = MatMul (h1, output_kernel)
        word1 = ArgMax <axis = 1, keepdims = 0> (logits)
        piece = Unsqueeze (logits, middle)
        ys1 = Concat <axis = 1> (ys, piece)
    }> (most, begin, zero, first, state, empty)
}"""

WEIGHTS = {
    "lstm_kernel": (FEATURES, 4 * UNITS),
    "lstm_recurrent": (UNITS, 4 * UNITS),
    "lstm_bias": (4 * UNITS,),
    "gru_kernel": (UNITS, 3 * UNITS),
    "gru_recurrent": (UNITS, 3 * UNITS),
    "gru_bias": (3 * UNITS,),
    "gru_late_bias": (3 * UNITS,),
    "query_kernel": (UNITS, UNITS),
    "table": (WORDS, 2),
    "decoder_kernel": (2 + 2 * UNITS, UNITS),
    "output_kernel": (UNITS, WORDS),
}


def exported(text: str) -> onnx.ModelProto:
    """A model with the weights that it reads."""
    head, _, rest = text.partition("{")
    used = [name for name in WEIGHTS if name in text]
    declared = ", ".join(f"float[{', '.join(map(str, WEIGHTS[name]))}] {name}" for name in used)
    signature, arrow, results = head.partition(") =>")
    model = parsed(f"{signature}, {declared}{arrow}{results}{{{rest}")
    rng = np.random.default_rng(3)
    for name in used:
        array = (rng.normal(size=WEIGHTS[name]) / 2).astype(np.float32)
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    inputs = [v for v in model.graph.input if v.name not in WEIGHTS]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    return model
