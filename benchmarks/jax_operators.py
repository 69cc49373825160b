"""The operators of ONNX that the zoo's models use, written in `jnp`; `jax_model.py` runs them.

Whatever depends on constants alone (shapes, slices, indices) is computed with NumPy while the
function is traced, so that `jax.jit` sees an ordinary static program. In a model of f16, sums are
f32, which may be too large for f16, and so is what is computed from them up to the next product. An
operator that is missing here raises `NotImplementedError`, which the benchmark reports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Value = Any
Attributes = Mapping[str, Any]


def is_known(value: Value) -> bool:
    """Whether the value is known while the function is traced."""
    return isinstance(value, np.ndarray | np.generic)


def _xp(*values: Value) -> Any:
    """NumPy where all values are constants, so that shapes stay known; else `jnp`."""
    return np if all(map(is_known, values)) else jnp


def _ints(value: Value) -> list[int]:
    return [int(v) for v in np.asarray(value).reshape(-1)]


def _factors(x: Value, w: Value) -> tuple[Value, Value]:
    """What a product multiplies: both in the narrower type of the two."""
    narrow = min(x.dtype, w.dtype, key=lambda dtype: dtype.itemsize)
    return x.astype(narrow), w.astype(narrow)


def _axes(a: Attributes, given: Value) -> tuple[int, ...] | None:
    """The axes of an input, in older models of an attribute; `None` where neither is there."""
    axes = a.get("axes") if given is None else _ints(given)
    return None if axes is None else tuple(axes)


def _pads(attributes: Attributes, rank: int) -> list[tuple[int, int]] | str:
    if attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER"):
        return attributes["auto_pad"].decode().replace("SAME_UPPER", "SAME")
    pads = attributes.get("pads", [0] * 2 * rank)
    return list(zip(pads[:rank], pads[rank:], strict=True))


def conv(a: Attributes, x: Value, w: Value, b: Value = None) -> Value:
    """A convolution, channels first."""
    rank = x.ndim - 2
    y = lax.conv_general_dilated(
        *_factors(x, w),
        a.get("strides", [1] * rank),
        _pads(a, rank),
        rhs_dilation=a.get("dilations", [1] * rank),
        feature_group_count=a.get("group", 1),
    )
    return y if b is None else y + jnp.reshape(b, (-1, *[1] * rank))


def conv_transpose(a: Attributes, x: Value, w: Value, b: Value = None) -> Value:
    """A transposed convolution, channels first, without groups."""
    rank = x.ndim - 2
    if a.get("group", 1) != 1:
        raise NotImplementedError("ConvTranspose with groups")
    window = w.shape[2:]
    pads = [(k - 1 - p, k - 1 - q) for k, (p, q) in zip(window, _pads(a, rank), strict=True)]
    flipped = jnp.flip(jnp.swapaxes(w, 0, 1), range(2, 2 + rank))
    strides = a.get("strides", [1] * rank)
    y = lax.conv_general_dilated(*_factors(x, flipped), [1] * rank, pads, lhs_dilation=strides)
    return y if b is None else y + jnp.reshape(b, (-1, *[1] * rank))


def matmul(a: Attributes, x: Value, y: Value) -> Value:
    """A matrix product."""
    return _xp(x, y).matmul(*_factors(x, y))


def gemm(a: Attributes, x: Value, y: Value, c: Value = None) -> Value:
    """A matrix product of maybe transposed matrices, and an addend."""
    product = matmul(a, x.T if a.get("transA") else x, y.T if a.get("transB") else y)
    product = product * a.get("alpha", 1.0)
    return product if c is None else product + c * a.get("beta", 1.0)


def layer_norm(a: Attributes, x: Value, scale: Value, bias: Value = None) -> Value:
    """Mean zero and variance one along the last axes."""
    axes = tuple(range(a.get("axis", -1) % x.ndim, x.ndim))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) * lax.rsqrt(variance + a.get("epsilon", 1e-5)) * scale
    return y if bias is None else y + bias


def batch_norm(
    a: Attributes, x: Value, scale: Value, bias: Value, mean: Value, variance: Value
) -> Value:
    """A scale and an offset a channel."""
    factor = scale / jnp.sqrt(variance + a.get("epsilon", 1e-5))
    shape = (-1, *[1] * (x.ndim - 2))
    return x * jnp.reshape(factor, shape) + jnp.reshape(bias - mean * factor, shape)


def instance_norm(a: Attributes, x: Value, scale: Value, bias: Value) -> Value:
    """Mean zero and variance one in each channel."""
    axes, shape = tuple(range(2, x.ndim)), (-1, *[1] * (x.ndim - 2))
    mean, variance = x.mean(axes, keepdims=True), x.var(axes, keepdims=True)
    y = (x - mean) * lax.rsqrt(variance + a.get("epsilon", 1e-5))
    return y * jnp.reshape(scale, shape) + jnp.reshape(bias, shape)


def pool(start: float, combine: Callable[..., Value], mean: bool) -> Callable[..., Value]:
    """Return a pooling operator."""

    def run(a: Attributes, x: Value) -> Value:
        rank = x.ndim - 2
        window, strides = a["kernel_shape"], a.get("strides", [1] * rank)
        pads, extra = _pads(a, rank), [(0, 0)] * rank
        if isinstance(pads, str):
            pads = lax.padtype_to_pads(x.shape[2:], window, strides, pads)
        if a.get("ceil_mode"):  # the last window may reach beyond the padding
            sizes = [size + sum(pad) for size, pad in zip(x.shape[2:], pads, strict=True)]
            triples = zip(sizes, window, strides, strict=True)
            extra = [(0, max(k - size, -(size - k) % step)) for size, k, step in triples]

        def windows(values: Value, padding: list[tuple[int, int]]) -> Value:
            every = [(0, 0), (0, 0), *padding]
            sides, steps = (1, 1, *window), (1, 1, *strides)
            return lax.reduce_window(values, start, combine, sides, steps, every)

        both = [(p, q + r) for (p, q), (_, r) in zip(pads, extra, strict=True)]
        y = windows(x, both)
        if not mean:
            return y
        ones = jnp.ones((1, 1, *x.shape[2:]), x.dtype)
        if not a.get("count_include_pad"):
            return y / windows(ones, both)
        return y / windows(jnp.pad(ones, [(0, 0), (0, 0), *pads], constant_values=1), extra)

    return run


def global_pool(a: Attributes, x: Value) -> Value:
    """The mean of each channel."""
    return x.mean(tuple(range(2, x.ndim)), keepdims=True)


def gather(a: Attributes, x: Value, indices: Value) -> Value:
    """Slices of `x` by number."""
    return _xp(x, indices).take(x, indices, axis=a.get("axis", 0))


def gather_nd(a: Attributes, x: Value, indices: Value) -> Value:
    """Elements or slices of `x` by their leading indices."""
    if a.get("batch_dims"):
        raise NotImplementedError("GatherND with batch dimensions")
    return x[tuple(indices[..., i] for i in range(indices.shape[-1]))]


def reshape(a: Attributes, x: Value, shape: Value) -> Value:
    """The same elements in another shape."""
    sizes = [
        x.shape[i] if n == 0 and not a.get("allowzero") else n for i, n in enumerate(_ints(shape))
    ]
    return _xp(x).reshape(x, sizes)


def split(a: Attributes, x: Value, sizes: Value = None) -> tuple[Value, ...]:
    """Parts along an axis."""
    axis = a.get("axis", 0)
    if sizes is None:
        return tuple(_xp(x).split(x, a["num_outputs"], axis))
    return tuple(_xp(x).split(x, np.cumsum(_ints(sizes))[:-1], axis))


def slice_(
    a: Attributes, x: Value, starts: Value, ends: Value, axes: Value = None, steps: Value = None
) -> Value:
    """A part along some axes."""
    first = _ints(starts)
    chosen = list(range(len(first))) if axes is None else _ints(axes)
    strides = [1] * len(first) if steps is None else _ints(steps)
    parts: list[slice] = [slice(None)] * x.ndim
    for axis, start, end, step in zip(chosen, first, _ints(ends), strides, strict=True):
        parts[axis] = slice(start, None if step < 0 and end < -x.shape[axis] else end, step)
    return x[tuple(parts)]


def expand(a: Attributes, x: Value, shape: Value) -> Value:
    """Repeated along axes of size one."""
    return jnp.broadcast_to(x, np.broadcast_shapes(x.shape, tuple(_ints(shape))))


def unsqueeze(a: Attributes, x: Value, axes: Value = None) -> Value:
    """New axes of size one."""
    return _xp(x).expand_dims(x, _axes(a, axes))


def squeeze(a: Attributes, x: Value, axes: Value = None) -> Value:
    """Without axes of size one."""
    return _xp(x).squeeze(x, _axes(a, axes))


def reduction(name: str) -> Callable[..., Value]:
    """Return a reduction along the axes of an attribute or an input."""

    def run(a: Attributes, x: Value, axes: Value = None) -> Value:
        keep = bool(a.get("keepdims", 1))
        return getattr(_xp(x), name)(x, axis=_axes(a, axes), keepdims=keep)

    return run


def sum_(a: Attributes, x: Value, axes: Value = None) -> Value:
    """A sum, in f32 of what is f16."""
    return reduction("sum")(a, x.astype(np.float32) if x.dtype == np.float16 else x, axes)


def lstm(
    a: Attributes,
    x: Value,
    w: Value,
    r: Value,
    b: Value = None,
    lengths: Value = None,
    h: Value = None,
    c: Value = None,
) -> tuple[Value, Value, Value]:
    """One layer forward, gates in the order input, output, forget, cell."""
    if w.shape[0] != 1 or lengths is not None:
        raise NotImplementedError("LSTM in two directions or with lengths")
    size, batch = a["hidden_size"], x.shape[1]
    first = jnp.zeros((batch, size), x.dtype)
    bias = 0 if b is None else b[0, : 4 * size] + b[0, 4 * size :]

    def step(state: tuple[Value, Value], gates: Value) -> tuple[tuple[Value, Value], Value]:
        hidden, cell = state
        i, o, f, g = jnp.split(gates + hidden @ r[0].T, 4, -1)
        cell = jax.nn.sigmoid(f) * cell + jax.nn.sigmoid(i) * jnp.tanh(g)
        hidden = jax.nn.sigmoid(o) * jnp.tanh(cell)
        return (hidden, cell), hidden

    start = (first if h is None else h[0], first if c is None else c[0])
    (hidden, cell), every = lax.scan(step, start, x @ w[0].T + bias)
    return every[:, None], hidden[None], cell[None]


def plain(name: str) -> Callable[..., Value]:
    """Return a function that NumPy and `jnp` both have under one name."""
    return lambda a, *values: getattr(_xp(*values), name)(*values)


def clip(a: Attributes, x: Value, low: Value = None, high: Value = None) -> Value:
    """Between two bounds."""
    return jnp.clip(x, low, high)


def gelu(a: Attributes, x: Value) -> Value:
    """The Gaussian error linear unit."""
    return jax.nn.gelu(x, approximate=a.get("approximate", b"none") == b"tanh")


def cast(a: Attributes, x: Value) -> Value:
    """Another element type."""
    return x.astype(a["to"])


def pad(a: Attributes, x: Value, pads: Value, value: Value = None, axes: Value = None) -> Value:
    """More elements at the edges."""
    if axes is not None:
        raise NotImplementedError("Pad along some axes")
    amounts, mode = _ints(pads), a.get("mode", b"constant").decode()
    both = list(zip(amounts[: x.ndim], amounts[x.ndim :], strict=True))
    filling = {"constant_values": 0 if value is None else value} if mode == "constant" else {}
    return jnp.pad(x, both, mode, **filling)


COORDINATES: dict[bytes, Callable[..., np.ndarray]] = {
    b"asymmetric": lambda i, scale, size, length: i / scale,
    b"half_pixel": lambda i, scale, size, length: (i + 0.5) / scale - 0.5,
    b"align_corners": lambda i, scale, size, length: i * (size - 1) / max(length - 1, 1),
}
ROUNDINGS: dict[bytes, Callable[[np.ndarray], np.ndarray]] = {
    b"floor": np.floor,
    b"ceil": np.ceil,
    b"round_prefer_floor": lambda x: np.ceil(x - 0.5),
    b"round_prefer_ceil": lambda x: np.floor(x + 0.5),
}


def resize(
    a: Attributes, x: Value, roi: Value = None, scales: Value = None, sizes: Value = None
) -> Value:
    """The nearest elements, at more or fewer places."""
    if a.get("mode", b"nearest") != b"nearest" or "axes" in a or "keep_aspect_ratio_policy" in a:
        raise NotImplementedError("Resize in other modes")
    place = COORDINATES[a.get("coordinate_transformation_mode", b"half_pixel")]
    rounded = ROUNDINGS[a.get("nearest_mode", b"round_prefer_floor")]
    if sizes is None:
        lengths = _ints(np.floor(np.asarray(x.shape) * scales))
    else:
        lengths = _ints(sizes)
        scales = np.divide(lengths, x.shape)
    for axis, (size, length, scale) in enumerate(zip(x.shape, lengths, scales, strict=True)):
        nearest = rounded(place(np.arange(length), float(scale), size, length))
        x = _stretched(x, axis, np.clip(nearest, 0, size - 1).astype(np.int64))
    return x


def _stretched(x: Value, axis: int, places: np.ndarray) -> Value:
    """Elements along an axis by their places; a copy of each where that is all."""
    times, rest = divmod(len(places), x.shape[axis])
    if not rest and np.array_equal(places, np.arange(len(places)) // times):
        return x if times == 1 else jnp.repeat(x, times, axis)
    return jnp.take(x, places, axis)


def constant_of_shape(a: Attributes, shape: Value) -> Value:
    """One number everywhere."""
    value = a.get("value", np.zeros(1, np.float32))
    return np.full(_ints(shape), value[0], value.dtype)


OPERATORS: dict[str, Callable[..., Value]] = {
    "Conv": conv,
    "ConvTranspose": conv_transpose,
    "MatMul": matmul,
    "Gemm": gemm,
    "LayerNormalization": layer_norm,
    "BatchNormalization": batch_norm,
    "InstanceNormalization": instance_norm,
    "MaxPool": pool(-np.inf, lax.max, mean=False),
    "AveragePool": pool(0.0, lax.add, mean=True),
    "GlobalAveragePool": global_pool,
    "Gather": gather,
    "GatherND": gather_nd,
    "Reshape": reshape,
    "Split": split,
    "Slice": slice_,
    "Unsqueeze": unsqueeze,
    "Squeeze": squeeze,
    "ReduceMean": reduction("mean"),
    "ReduceSum": sum_,
    "ReduceMax": reduction("max"),
    "ReduceL2": lambda a, x, axes=None: jnp.sqrt(sum_(a, x * x, axes)),
    "GlobalMaxPool": lambda a, x: x.max(tuple(range(2, x.ndim)), keepdims=True),
    "Range": lambda a, start, end, step: np.arange(int(start), int(end), int(step)),
    "LSTM": lstm,
    "Clip": clip,
    "Gelu": gelu,
    "Cast": cast,
    "Pad": pad,
    "Resize": resize,
    "Add": plain("add"),
    "Sub": plain("subtract"),
    "Mul": plain("multiply"),
    "Div": plain("divide"),
    "Max": plain("maximum"),
    "Min": plain("minimum"),
    "Abs": plain("abs"),
    "Log": plain("log"),
    "Pow": plain("power"),
    "Sqrt": plain("sqrt"),
    "Exp": plain("exp"),
    "Neg": plain("negative"),
    "Sin": plain("sin"),
    "Cos": plain("cos"),
    "Tanh": plain("tanh"),
    "Where": plain("where"),
    "IsNaN": plain("isnan"),
    "And": plain("logical_and"),
    "Not": plain("logical_not"),
    "Equal": plain("equal"),
    "Less": plain("less"),
    "LessOrEqual": plain("less_equal"),
    "Greater": plain("greater"),
    "GreaterOrEqual": plain("greater_equal"),
    "Erf": lambda a, x: jax.scipy.special.erf(x),
    "Relu": lambda a, x: jax.nn.relu(x),
    "Sigmoid": lambda a, x: jax.nn.sigmoid(x),
    "HardSigmoid": lambda a, x: jnp.clip(a.get("alpha", 0.2) * x + a.get("beta", 0.5), 0, 1),
    "HardSwish": lambda a, x: x * jnp.clip(x / 6 + 0.5, 0, 1),
    "Reciprocal": lambda a, x: 1 / x,
    "Softmax": lambda a, x: jax.nn.softmax(x, axis=a.get("axis", -1)),
    "Transpose": lambda a, x: _xp(x).transpose(x, a.get("perm")),
    "Concat": lambda a, *xs: _xp(*xs).concatenate(xs, axis=a["axis"]),
    "Expand": expand,
    "Flatten": lambda a, x: x.reshape(int(np.prod(x.shape[: a.get("axis", 1)])), -1),
    "Identity": lambda a, x: x,
    "Shape": lambda a, x: np.array(x.shape[a.get("start", 0) : a.get("end")], np.int64),
    "Size": lambda a, x: np.array(np.prod(x.shape), np.int64),
    "Constant": lambda a: a["value"],
    "ConstantOfShape": constant_of_shape,
}
