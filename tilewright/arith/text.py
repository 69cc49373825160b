"""Expressions as text: `print_expr` and `parse_expr`, inverse to each other.

max(A[i.0 * 8 + i.1, k] * 2.0, 0.0)      f32 literals have a point, i64 literals have none
x + 1:i32    true    inf:f32             any other literal or variable says its dtype
f32(n)    bits.i32(x)    select(c, a, b)  casts, bit casts, choice
A[i, j ? i < n]                          a load that reads only where its mask holds
sum(k in K) A[i, k]                      reductions, in tensor expressions
ramp(i, 1, 4)    broadcast(x, 4)         vector values, after finalize
lane(v, 2)                               one element of a vector
check(i, -N, N, 0)                       `i`, reported as check 0 if it is not in -N .. N - 1
"""

from __future__ import annotations

import math
from collections.abc import Mapping

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
    Reduce,
    Select,
    Unary,
    Var,
    call,
    const,
)
from tilewright.arith.memo import Memo
from tilewright.arith.operators import CALLS, REDUCTIONS
from tilewright.arith.vector import Lane, Ramp, Shuffle
from tilewright.core.dtypes import BOOL, DTYPES, F32, I64, DType
from tilewright.core.text import Cursor, refuses_deep_text

_INFIX = {
    "or": ("|", 1),
    "xor": ("^", 2),
    "and": ("&", 3),
    "eq": ("==", 4),
    "ne": ("!=", 4),
    "lt": ("<", 5),
    "le": ("<=", 5),
    "shl": ("<<", 6),
    "shr": (">>", 6),
    "add": ("+", 7),
    "sub": ("-", 7),
    "mul": ("*", 8),
    "div": ("/", 8),
    "floordiv": ("//", 8),
    "mod": ("%", 8),
}
_BY_SYMBOL = {symbol: (op, level) for op, (symbol, level) in _INFIX.items()}
# Text may also say these; they are read as the comparison with its sides exchanged.
_MIRRORED = {">": ("lt", 5), ">=": ("le", 5)}
_PREFIX_LEVEL = 9
_NAMED_BINARY = ("min", "max", "rem")


# Longer texts are not cached: the text of a DAG may be exponentially longer than the DAG.
_KEPT_UP_TO = 256
_TEXTS: Memo[Expr, str] = Memo()


def print_expr(e: Expr, level: int = 0) -> str:
    """The text of `e`, parenthesised where it stands under an operator of a higher `level`."""
    text = _TEXTS.get(e)
    if text is None:
        text = _print(e)
        if len(text) <= _KEPT_UP_TO:
            _TEXTS.keep(e, text)
    return f"({text})" if level and level > _binds(e) else text


def _binds(e: Expr) -> int:
    """How tightly the outermost operator of `e` binds."""
    match e:
        case Binary(op=op) if op in _INFIX:
            return _INFIX[op][1]
        case Reduce():
            return 0
    return _PREFIX_LEVEL


def _print(e: Expr) -> str:
    match e:
        case Const():
            return _print_const(e)
        case Var(name, dtype):
            return name if dtype == I64 else f"{name}:{dtype}"
        case Binary(op=op, a=a, b=b) if op in _INFIX:
            symbol, mine = _INFIX[op]
            return f"{print_expr(a, mine)} {symbol} {print_expr(b, mine + 1)}"
        case Binary(op=op, a=a, b=b):
            return f"{op}({print_expr(a)}, {print_expr(b)})"
        case Unary(op=op, a=a):
            return ("-" if op == "neg" else "!") + f"({print_expr(a)})"
    return _print_compound(e)


def _print_compound(e: Expr) -> str:
    match e:
        case Call(fn, args):
            return f"{fn}({', '.join(map(print_expr, args))})"
        case Cast(dtype, a):
            return f"{dtype}({print_expr(a)})"
        case Bitcast(dtype, a):
            return f"bits.{dtype}({print_expr(a)})"
        case Select(cond=cond, a=a, b=b):
            return f"select({print_expr(cond)}, {print_expr(a)}, {print_expr(b)})"
        case Load(buffer, indices, _, mask):
            where = "" if mask is None else f"? {print_expr(mask)}"
            return f"{buffer}[{', '.join(map(print_expr, indices))}{where and ' ' + where}]"
        case Reduce(op=op, axes=axes, body=body):
            over = ", ".join(f"{v.name} in {print_expr(n)}" for v, n in axes)
            return f"{op}({over}) {print_expr(body, _PREFIX_LEVEL)}"
    return _print_vector(e)


def _print_vector(e: Expr) -> str:
    match e:
        case Ramp(base=base, stride=stride, count=count):
            return f"ramp({print_expr(base)}, {stride}, {count})"
        case Broadcast(a=a, count=count):
            return f"broadcast({print_expr(a)}, {count})"
        case Lane(a=a, index=index):
            return f"lane({print_expr(a)}, {index})"
        case CheckedIndex(index=index, low=low, size=size, site=site):
            return f"check({', '.join(map(print_expr, (index, low, size)))}, {site})"
        case Shuffle(a=a, b=b, picks=picks):
            return f"shuffle({print_expr(a)}, {print_expr(b)}, {', '.join(map(str, picks))})"
    raise AssertionError(f"no text for {type(e).__name__}")


def _print_const(e: Const) -> str:
    if e.dtype == BOOL:
        return "true" if e.value else "false"
    text = repr(e.value)
    if isinstance(e.value, float):
        text = text if math.isfinite(e.value) else text.replace("-", "")
    bare = e.dtype == I64 or (e.dtype == F32 and math.isfinite(e.value))
    text = text if bare else f"{text.removeprefix('-')}:{e.dtype}"
    negative = math.copysign(1, e.value) < 0
    return f"(-{text.removeprefix('-')})" if negative else text


class ExprParser:
    """Parses expressions from a cursor; `buffers` gives the dtype of each buffer that is read."""

    def __init__(self, cursor: Cursor, buffers: Mapping[str, DType]) -> None:
        self.cursor = cursor
        self.buffers = buffers

    def parse(self, level: int = 0) -> Expr:
        """One expression whose outermost operator binds at least as tightly as `level`."""
        left = self._prefix()
        while True:
            symbol = self.cursor.now.text
            op, mine = _BY_SYMBOL.get(symbol) or _MIRRORED.get(symbol, ("", -1))
            if self.cursor.now.kind != "punct" or mine < max(level, 0):
                return left
            self.cursor.position += 1
            right = self.parse(mine + 1)
            left = Binary(op, right, left) if symbol in _MIRRORED else Binary(op, left, right)

    def _prefix(self) -> Expr:
        if self.cursor.accept("("):
            inner = self.parse()
            self.cursor.expect(")")
            return inner
        if self.cursor.accept("-"):
            return self._literal(-1) if self._at_number() else Unary("neg", self._prefix())
        if self.cursor.accept("!"):
            return Unary("not", self._prefix())
        return self._atom()

    def _at_number(self) -> bool:
        return self.cursor.now.kind in ("int", "float") or self.cursor.now.text in ("inf", "nan")

    def _atom(self) -> Expr:
        if self._at_number():
            return self._literal(1)
        name = self.cursor.take("name")
        if name in ("true", "false"):
            return Const(name == "true", BOOL)
        if self.cursor.accept("["):
            return self._load(name)
        if self.cursor.accept("("):
            return self._applied(name)
        return Var(name, self._suffix(I64))

    def _suffix(self, default: DType) -> DType:
        following = self.cursor.tokens[min(self.cursor.position + 1, len(self.cursor.tokens) - 1)]
        if self.cursor.peek(":") and following.text in DTYPES:
            self.cursor.position += 2
            return DTYPES[following.text]
        return default

    def _literal(self, sign: int) -> Const:
        token = self.cursor.now
        self.cursor.position += 1
        if token.kind == "int":
            return const(sign * int(token.text), self._suffix(I64))
        return Const(math.copysign(float(token.text), sign), self._suffix(F32))

    def _load(self, name: str) -> Load:
        if name not in self.buffers:
            self.cursor.fail(f"no buffer named {name!r}")
        indices = self._list_until("?", "]")
        mask = self.parse() if self.cursor.accept("?") else None
        self.cursor.expect("]")
        return Load(name, indices, self.buffers[name], mask)

    def _list_until(self, *ends: str) -> tuple[Expr, ...]:
        items: list[Expr] = []
        while not any(self.cursor.peek(end) for end in ends):
            items.append(self.parse())
            if not self.cursor.accept(","):
                break
        return tuple(items)

    def _applied(self, name: str) -> Expr:
        if name in REDUCTIONS and self.cursor.now.kind == "name" and self.cursor.peek("in", 1):
            return self._reduce(name)
        args = self._list_until(")")
        self.cursor.expect(")")
        if name in CALLS and len(args) == CALLS[name]:
            return call(name, *args)
        if name in _NAMED_BINARY and len(args) == 2:
            return Binary(name, args[0], args[1])
        if name in DTYPES and len(args) == 1:
            return Cast(DTYPES[name], args[0])
        if name.startswith("bits.") and name[5:] in DTYPES and len(args) == 1:
            return Bitcast(DTYPES[name[5:]], args[0])
        return self._vector_or_select(name, args)

    def _vector_or_select(self, name: str, args: tuple[Expr, ...]) -> Expr:
        match name, args:
            case "select", (cond, a, b):
                return Select(cond, a, b)
            case "ramp", (base, Const(stride), Const(count)):
                return Ramp(base, int(stride), int(count))
            case "broadcast", (a, Const(count)):
                return Broadcast(a, int(count))
            case "lane", (a, Const(index)):
                return Lane(a, int(index))
            case "check", (index, low, size, Const(site)):
                return CheckedIndex(index, low, size, int(site))
            case "shuffle", (a, b, *picks):
                return Shuffle(a, b, tuple(int(p.value) for p in picks if isinstance(p, Const)))
        self.cursor.fail(f"no function {name} of {len(args)} arguments")

    def _reduce(self, op: str) -> Expr:
        axes: list[tuple[Var, Expr]] = []
        while not self.cursor.accept(")"):
            axis = Var(self.cursor.take("name"))
            self.cursor.expect("in")
            axes.append((axis, self.parse()))
            self.cursor.accept(",")
        return Reduce(op, tuple(axes), self.parse(_PREFIX_LEVEL))


@refuses_deep_text
def parse_expr(source: str, buffers: Mapping[str, DType] | None = None) -> Expr:
    """The expression that `source` spells; `buffers` gives the dtypes of buffers it reads."""
    cursor = Cursor(source)
    result = ExprParser(cursor, buffers or {}).parse()
    if cursor.now.kind != "end":
        cursor.fail(f"unexpected {cursor.now.text!r} after the expression")
    return result
