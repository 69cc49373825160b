"""Expressions as Python source, for the interpreter: one assignment a node, exact semantics.

Scalars of integer and bool types are Python's `int` and `bool`, wrapped to their width; floats are
NumPy scalars, which round each operation. Values of several lanes are NumPy arrays. Index
arithmetic (variables and literals of `i64` only) is taken not to overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tilewright.arith.checked_index import CheckedIndex
from tilewright.arith.expr import (
    Binary,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    Var,
)
from tilewright.arith.operators import COMPARISONS
from tilewright.arith.vector import Lane, Ramp, Shuffle
from tilewright.arith.walk import loads
from tilewright.core.dtypes import BOOL, F32, I64, DType, literal_value
from tilewright.ir.loop.interp import support
from tilewright.ir.scalar_semantics import BINARY_OPS, UNARY_OPS

_SYMBOLS = {
    **{"add": "+", "sub": "-", "mul": "*", "and": "&", "or": "|", "xor": "^"},
    **{"lt": "<", "le": "<=", "eq": "==", "ne": "!="},
}
_FLOAT_SYMBOLS = {"div": "/"}
_INT_HELPERS = ("div", "floordiv", "mod", "rem", "shl", "shr")
# Integer operators whose result can leave the range of the type.
_GROWING = ("add", "sub", "mul", "div", "floordiv", "shl", "neg", "not")


class ExprWriter:
    """Appends the assignments that compute expressions to `lines`."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 1
        self.scope: dict[str, Any] = {"support": support, "np": np}
        self.variables: dict[str, str] = {}
        self.free: dict[str, str] = {}
        self.buffers: dict[str, str] = {}
        self.site = "''"
        self.lane_mask: str | None = None
        self.index_masks: list[str] = []
        self._known: dict[Expr, str] = {}
        self._pure: dict[Expr, bool] = {}
        self._checked: set[str] = set()
        self._count = 0

    def line(self, text: str) -> None:
        """Append one line at the current depth."""
        self.lines.append("    " * self.depth + text)

    @contextmanager
    def nested(self, head: str = "") -> Iterator[None]:
        """Lines inside stand under `head`; what they compute is not known after them."""
        if head:
            self.line(head)
            self.depth += 1
        known, self._known = self._known, dict(self._known)
        checked, self._checked = self._checked, set(self._checked)
        start = len(self.lines)
        yield
        if head and len(self.lines) == start:
            self.line("pass")
        self._known, self._checked = known, checked
        if head:
            self.depth -= 1

    @contextmanager
    def under(self, masks: list[str]) -> Iterator[None]:
        """Indices inside are used only where these masks hold, lane by lane."""
        outer, self.index_masks = self.index_masks, [*self.index_masks, *masks]
        with self.nested():
            yield
        self.index_masks = outer

    def forget(self) -> None:
        """Forget all values, because a statement may have changed what they were computed from."""
        self._known = {}

    def fresh(self, stem: str = "t") -> str:
        """A name not used before."""
        self._count += 1
        return f"{stem}{self._count}"

    def constant(self, value: Any) -> str:
        """A name bound to `value` in the generated module."""
        name = self.fresh("c")
        self.scope[name] = value
        return name

    def atom(self, e: Expr) -> str:
        """The name or literal that holds the value of `e`."""
        if e not in self._known:
            self._known[e] = _WRITE[type(e)](self, e)
        return self._known[e]

    def assign(self, formula: str) -> str:
        """A new name for the value of `formula`."""
        name = self.fresh()
        self.line(f"{name} = {formula}")
        return name

    def wrapped(self, formula: str, dtype: DType) -> str:
        """`formula`, a Python integer, brought into the range of `dtype`."""
        mask, half = (1 << dtype.bits) - 1, 1 << (dtype.bits - 1)
        if dtype.kind == "uint":
            return f"({formula}) & {mask}"
        return f"((({formula}) + {half}) & {mask}) - {half}"

    def is_index(self, e: Expr) -> bool:
        """Whether `e` is index arithmetic, which does not overflow."""
        if e not in self._pure:
            if isinstance(e, Binary | Unary | Select):
                parts = [getattr(e, f) for f in ("cond", "a", "b") if hasattr(e, f)]
                shift = isinstance(e, Binary) and e.op == "shl"
                self._pure[e] = not shift and all(self.is_index(x) for x in parts)
            else:
                self._pure[e] = isinstance(e, Var | Const) and e.dtype in (I64, BOOL)
        return self._pure[e]

    def operand(self, e: Expr, lanes: int) -> str:
        """The atom of `e`; under an operation on vectors a scalar says its NumPy type."""
        atom = self.atom(e)
        if lanes == 1 or e.lanes > 1 or e.dtype.is_float:
            return atom
        return f"{self.numpy_type(e.dtype)}({atom})"

    def numpy_type(self, dtype: DType) -> str:
        """A name for the NumPy scalar type of `dtype`."""
        name = f"type_{dtype}"
        self.scope[name] = dtype.numpy.type
        return name

    def dtype_name(self, dtype: DType) -> str:
        """A name for `dtype` itself."""
        name = f"dtype_{dtype}"
        self.scope[name] = dtype
        return name

    def check_bounds(self, buffer: str, indices: list[str]) -> None:
        """Raise at run time where an index is outside the buffer."""
        name = self.buffers[buffer]
        inside = " and ".join(f"0 <= {i} < {name}_{n}" for n, i in enumerate(indices))
        if inside and inside not in self._checked:
            self._checked.add(inside)
            given = f"({', '.join(indices)},)"
            self.line(f"if not ({inside}):")
            self.line(f"    support.out_of_bounds({buffer!r}, {name}, {given}, {self.site})")

    def accessed(self, how: str, buffer: str, place: str) -> None:
        """Note that elements are read or written: nothing, where only one agent runs."""

    def slice_of(self, buffer: str, indices: tuple[Expr, ...]) -> str | None:
        """Neighbours along the last dimension as a slice, checked; `None` for other lanes."""
        *rows, last = indices or (None,)
        if not isinstance(last, Ramp) or last.stride != 1 or any(i.lanes > 1 for i in rows):
            return None
        name, first = self.buffers[buffer], self.atom(last.base)
        end, places = f"{first} + {last.count}", [self.atom(i) for i in rows]
        inside = [f"0 <= {i} < {name}_{n}" for n, i in enumerate(places)]
        inside.append(f"0 <= {first} and {end} <= {name}_{len(rows)}")
        self.line(f"if not ({' and '.join(inside)}):")
        lanes = ", ".join([*places, f"np.arange({first}, {end})"])
        given = f"{buffer!r}, {name}, ({lanes},), True, {last.count}, {self.site}"
        self.line(f"    support.load_lanes({given})")  # names the lane that is outside
        return f"{name}[{', '.join([*places, f'{first}:{end}'])}]"


def _const(w: ExprWriter, e: Const) -> str:
    if e.dtype.is_float:
        return w.constant(literal_value(e.value, e.dtype))
    return repr(bool(e.value) if e.dtype == BOOL else int(e.value))


def _var(w: ExprWriter, e: Var) -> str:
    name = w.variables.get(e.name)
    if name is None:
        name = w.free.setdefault(e.name, f"size{len(w.free)}")
    return w.assign(f"{w.numpy_type(e.dtype)}({name})") if e.dtype.is_float else name


def _binary(w: ExprWriter, e: Binary) -> str:
    lanes, dtype = e.lanes, e.a.dtype
    a, b = w.operand(e.a, lanes), w.operand(e.b, lanes)
    if lanes > 1:
        return w.assign(f"{_vector_op(w, e.op)}({a}, {b})")
    if e.op in ("min", "max"):
        return w.assign(_extreme(e.op, a, b, dtype))
    if e.op in _SYMBOLS and not (dtype == BOOL and e.op in ("add", "sub", "mul")):
        return w.assign(_narrowed(w, e, f"{a} {_SYMBOLS[e.op]} {b}"))
    if dtype.is_integer and e.op in _INT_HELPERS:
        return w.assign(_narrowed(w, e, _int_op(e.op, a, b, e.b, dtype)))
    if e.op in _FLOAT_SYMBOLS and not dtype.is_integer:
        return w.assign(f"{a} {_FLOAT_SYMBOLS[e.op]} {b}")
    formula = f"{_vector_op(w, e.op)}({a}, {b})"
    return w.assign(f"bool({formula})" if dtype == BOOL else f"{formula}[()]")


def _extreme(op: str, a: str, b: str, dtype: DType) -> str:
    """`min` or `max`; on floats a NaN on either side is the result, and -0.0 is below 0.0."""
    better = f"{a} {'<' if op == 'min' else '>'} {b}"
    if not dtype.is_float:
        return f"{a} if {better} else {b}"
    zero = f"-(-{a} - {b})" if op == "min" else f"{a} + {b}"
    return f"{a} if {better} or {a} != {a} else {b} if {a} != {b} or {a} else {zero}"


def _int_op(op: str, a: str, b: str, divisor: Expr, dtype: DType) -> str:
    if op in ("floordiv", "mod") and isinstance(divisor, Const) and divisor.value:
        return f"{a} {'//' if op == 'floordiv' else '%'} {b}"
    if op in ("shl", "shr"):
        return f"support.{op}({a}, {b}, {dtype.bits})"
    return f"support.{op}({a}, {b})"


def _vector_op(w: ExprWriter, op: str) -> str:
    w.scope[f"op_{op}"] = BINARY_OPS[op]
    return f"op_{op}"


def _narrowed(w: ExprWriter, e: Binary | Unary, formula: str) -> str:
    grows = e.op in _GROWING and e.dtype.is_integer and e.op not in COMPARISONS
    return w.wrapped(formula, e.dtype) if grows and not w.is_index(e) else formula


def _unary(w: ExprWriter, e: Unary) -> str:
    a = w.atom(e.a)
    if e.lanes > 1:
        w.scope[f"op_{e.op}"] = UNARY_OPS[e.op]
        return w.assign(f"op_{e.op}({a})")
    if e.dtype == BOOL:
        return w.assign(f"not {a}")
    return w.assign(_narrowed(w, e, f"-{a}" if e.op == "neg" else f"~{a}"))


def _call(w: ExprWriter, e: Call) -> str:
    args = ", ".join(w.operand(a, e.lanes) for a in e.args)
    dtype = w.dtype_name(e.dtype)
    if e.lanes > 1:
        return w.assign(f"support.call_value({e.fn!r}, {dtype}, {args})")
    source = w.dtype_name(e.args[0].dtype)
    return w.assign(f"support.call({e.fn!r}, {dtype}, {source}, {args})")


def _cast(w: ExprWriter, e: Cast) -> str:
    a, source, dtype = w.operand(e.a, e.lanes), e.a.dtype, e.dtype
    if e.lanes > 1:
        return w.assign(f"support.cast_value({a}, {w.dtype_name(dtype)})")
    if dtype == BOOL:
        return w.assign(f"{a} != 0")
    if dtype.is_integer:
        if source.is_float:
            return w.assign(f"support.float_to_int({a}, {w.dtype_name(dtype)})")
        return w.assign(w.wrapped(f"int({a})", dtype))
    if dtype.is_storage and source.is_float and source != F32:
        return w.assign(f"support.cast_value({a}, {w.dtype_name(dtype)})[()]")
    kind = w.numpy_type(dtype)
    if source.is_integer:
        return w.assign(f"support.to_float({a}, {kind})")
    # A float of Python's own holds all of them, and NumPy makes a scalar of it much faster.
    return w.assign(f"{kind}(float({a}))")


def _bitcast(w: ExprWriter, e: Bitcast) -> str:
    a = w.operand(e.a, e.lanes)
    if e.lanes > 1:
        return w.assign(f"support.bitcast_value({a}, {w.dtype_name(e.dtype)})")
    return w.assign(f"support.bitcast({a}, {w.dtype_name(e.a.dtype)}, {w.dtype_name(e.dtype)})")


def _select(w: ExprWriter, e: Select) -> str:
    c, a, b = w.atom(e.cond), w.operand(e.a, e.lanes), w.operand(e.b, e.lanes)
    if e.lanes > 1:
        return w.assign(f"np.where({c}, {a}, {b})")
    return w.assign(f"{a} if {c} else {b}")


def _load(w: ExprWriter, e: Load) -> str:
    if e.lanes > 1:
        return _vector_load(w, e)
    if e.mask is None:
        return _scalar_load(w, e, w.fresh())
    mask, result = w.atom(e.mask), w.fresh()
    with w.nested(f"if {mask}:"):
        _scalar_load(w, e, result)
    w.line("else:")
    w.line(f"    {result} = {_const(w, Const(0.0 if e.dtype.is_float else 0, e.dtype))}")
    return result


def _scalar_load(w: ExprWriter, e: Load, result: str) -> str:
    indices = [w.atom(i) for i in e.indices]
    w.check_bounds(e.buffer, indices)
    place, name = ", ".join(indices), w.buffers[e.buffer]
    w.accessed("read", e.buffer, f"({place},)" if place else "()")
    if e.dtype.is_integer and e.dtype.is_small:
        w.line(f"{result} = int({name}[{place or '()'}])")
    elif e.dtype.is_integer or e.dtype == BOOL:
        w.line(f"{result} = {name}.item({place})")
    else:
        w.line(f"{result} = {name}[{place or '()'}]")
    return result


def _vector_load(w: ExprWriter, e: Load) -> str:
    masks = [] if e.mask is None else [w.atom(e.mask)]
    masks += [] if w.lane_mask is None else [w.lane_mask]
    if not masks and (part := w.slice_of(e.buffer, e.indices)) is not None:
        w.accessed("read", e.buffer, f"np.s_{part[part.index('[') :]}")
        return w.assign(f"{part}.copy()")  # not what is stored there later
    mask = " & ".join(masks) or "True"
    with w.under(masks):
        indices = f"({''.join(w.atom(i) + ', ' for i in e.indices)})"
    w.accessed("read", e.buffer, f"support.active_lanes({indices}, {mask}, {e.lanes})")
    place = f"{e.buffer!r}, {w.buffers[e.buffer]}, {indices}, {mask}, {e.lanes}, {w.site}"
    return w.assign(f"support.load_lanes({place})")


def _checked_index(w: ExprWriter, e: CheckedIndex) -> str:
    own = [w.atom(x.mask) for x in loads(e.index) if x.mask is not None]
    given = ", ".join([*map(w.atom, (e.index, e.low, e.size)), *own, *w.index_masks])
    return w.assign(f"support.checked_index({given})")


def _ramp(w: ExprWriter, e: Ramp) -> str:
    steps = w.constant(np.arange(e.count, dtype=e.dtype.numpy) * e.dtype.numpy.type(e.stride))
    return w.assign(f"{w.atom(e.base)} + {steps}")


def _broadcast(w: ExprWriter, e: Broadcast) -> str:
    return w.assign(f"np.full({e.count}, {w.atom(e.a)}, {w.numpy_type(e.dtype)})")


def _lane(w: ExprWriter, e: Lane) -> str:
    return w.assign(f"{w.atom(e.a)}[{e.index}]")


def _shuffle(w: ExprWriter, e: Shuffle) -> str:
    both = f"np.concatenate(({w.atom(e.a)}, {w.atom(e.b)}))"
    return w.assign(f"{both}[{w.constant(np.array(e.picks))}]")


_WRITE: dict[type, Callable[..., str]] = {
    Const: _const,
    Var: _var,
    Binary: _binary,
    Unary: _unary,
    Call: _call,
    Cast: _cast,
    Bitcast: _bitcast,
    Select: _select,
    Load: _load,
    Ramp: _ramp,
    Broadcast: _broadcast,
    Lane: _lane,
    Shuffle: _shuffle,
    CheckedIndex: _checked_index,
}
