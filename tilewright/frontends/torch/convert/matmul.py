"""Matrix products."""

from __future__ import annotations

from tilewright.arith.expr import const
from tilewright.frontends.torch.context import AtenCall, Converter, Result, TorchContext
from tilewright.frontends.torch.convert.widened import is_narrow


def product(first: str, second: str) -> Converter:
    """A product of two matrices, or of as many pairs."""
    return lambda c, n: c.add(n, "matmul", n[first], n[second])


def _scaled(c: TorchContext, n: AtenCall, value: str, factor: float) -> str:
    return value if factor == 1 else c.add(n, "mul", value, c.constant(factor, c.type(value).dtype))


def added(first: str, second: str) -> Converter:
    """`beta * self + alpha * (first @ second)`, leaving out what does nothing.

    With factors other than 1 a product of 16-bit floats is not rounded before it is added.
    """

    def convert(c: TorchContext, n: AtenCall) -> Result:
        is_wide = is_narrow(n.dtype) and not {n["alpha"], n["beta"]} <= {0, 1}
        product = c.add(n, "matmul_f32out" if is_wide else "matmul", n[first], n[second])
        y = _scaled(c, n, product, n["alpha"])
        if n["beta"] != 0:
            other = c.cast(n, n["self"], c.type(y).dtype)
            y = c.add(n, "add", y, _scaled(c, n, other, n["beta"]))
        return c.cast(n, y, n.dtype)

    return convert


def linear(c: TorchContext, n: AtenCall) -> Result:
    """`input @ weight.T + bias`."""
    x, w = n["input"], c.transpose(n, n["weight"], (1, 0))
    vector = c.type(x).rank == 1
    rows = c.reshape(n, x, (const(1), *c.type(x).shape)) if vector else x
    y = c.add(n, "matmul", rows, w)
    y = c.reshape(n, y, c.type(y).shape[1:]) if vector else y
    return y if n["bias"] is None else c.add(n, "add", y, n["bias"])


def vectors(first: str, second: str) -> Converter:
    """A product in which a vector is a row on the left, a column on the right."""

    def convert(c: TorchContext, n: AtenCall) -> Result:
        a, b = n[first], n[second]
        if c.type(a).rank == 1:
            a = c.reshape(n, a, (const(1), *c.type(a).shape))
        if c.type(b).rank == 1:
            b = c.reshape(n, b, (*c.type(b).shape, const(1)))
        y = c.add(n, "matmul", a, b)
        return c.reshape(n, y, n.type.shape)

    return convert


CONVERTERS: dict[str, Converter] = {
    "aten.mm": product("self", "mat2"),
    "aten.bmm": product("self", "mat2"),
    "aten.addmm": added("mat1", "mat2"),
    "aten.baddbmm": added("batch1", "batch2"),
    "aten.linear": linear,
    "aten.dot": vectors("self", "tensor"),
    "aten.mv": vectors("self", "vec"),
}
