"""The value of an index expression: interpreted once, or compiled to a Python function.

    evaluate(i * 8 + j, {"i": 2, "j": 3})        19
    compile_index(i * 8 + j, ("i", "j"))(2, 3)   19, for many evaluations of one expression

Index arithmetic is assumed not to overflow, so `i64` values are Python integers of any size; the
narrower integers wrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.arith.expr import Binary, Cast, Const, Expr, Select, Unary, Var, wrap
from tilewright.arith.memo import Memo
from tilewright.arith.operators import BINARY, COMPARISONS, DIVISIONS
from tilewright.core.dtypes import BOOL, I64, DType
from tilewright.core.errors import ExecutionError, UnsupportedError

Env = Mapping[str, int]


def evaluate(e: Expr, env: Env) -> int:
    """The value of an integer or bool expression without loads, variables taken from `env`."""
    value = _walk(e, env)
    return bool(value) if e.dtype == BOOL else value


def _walk(e: Expr, env: Env) -> int:
    found = _EVALUATE.get(type(e))
    if found is None or e.dtype.is_float:
        raise _not_index(e)
    return found(e, env)


def _var(e: Var, env: Env) -> int:
    if e.name not in env:
        raise ExecutionError(
            "evaluate.unbound",
            f"no value for {e.name}",
            help=f"given are {', '.join(sorted(env)) or 'none'}",
        )
    return env[e.name]


def _binary(e: Binary, env: Env) -> int:
    value: int = BINARY[e.op](_walk(e.a, env), _walk(e.b, env))
    return value if e.dtype is I64 else _narrow(value, e.dtype)


def _unary(e: Unary, env: Env) -> int:
    value = _walk(e.a, env)
    if e.op == "neg":
        return _narrow(-value, e.dtype)
    return int(not value) if e.dtype == BOOL else _narrow(~value, e.dtype)


def _narrow(value: int, dtype: DType) -> int:
    if dtype == I64:
        return value
    return int(value != 0) if dtype == BOOL else wrap(value, dtype)


# How to evaluate a node of each class.
_EVALUATE: dict[type, Callable[[Any, Env], int]] = {
    Const: lambda e, env: int(e.value),
    Var: _var,
    Binary: _binary,
    Unary: _unary,
    Select: lambda e, env: _walk(e.a if _walk(e.cond, env) else e.b, env),
    Cast: lambda e, env: _narrow(_walk(e.a, env), e.dtype),
}


def _not_index(e: Expr) -> UnsupportedError:
    return UnsupportedError(
        "evaluate.node",
        f"{e} is no index expression",
        help="only integer and bool constants, variables, operators, select and casts are",
    )


_SYMBOLS = {
    "add": "+",
    "sub": "-",
    "mul": "*",
    "floordiv": "//",
    "mod": "%",
    "and": "&",
    "or": "|",
    "xor": "^",
    "shl": "<<",
    "shr": ">>",
    "lt": "<",
    "le": "<=",
    "eq": "==",
    "ne": "!=",
}
_COMPILED: Memo[tuple[Expr, tuple[str, ...]], Callable[..., int]] = Memo()


def compile_index(e: Expr, names: Sequence[str]) -> Callable[..., int]:
    """A Python function of the variables `names`, in this order, that computes `e`."""
    key = (e, tuple(names))
    found = _COMPILED.get(key)
    return found if found is not None else _COMPILED.keep(key, _compile(e, key[1]))


def _compile(e: Expr, names: tuple[str, ...]) -> Callable[..., int]:
    # One assignment a node: deep nesting would overflow Python's own parser.
    writer = _Writer({name: f"v{n}" for n, name in enumerate(names)})
    result = writer.name_of(e)
    lines = [f"def compiled({', '.join(writer.params.values())}):", *writer.lines]
    scope: dict[str, Any] = {f"{op}_": f for op, f in BINARY.items()}
    scope["narrow"] = _narrow
    scope.update(writer.dtypes)
    exec("\n".join([*lines, f"    return {result}"]), scope)
    compiled: Callable[..., int] = scope["compiled"]
    return compiled


class _Writer:
    """Writes the body of the compiled function; equal subexpressions are computed once."""

    def __init__(self, params: dict[str, str]) -> None:
        self.params = params
        self.lines: list[str] = []
        self.names: dict[Expr, str] = {}
        self.dtypes: dict[str, DType] = {}
        self.branches = 0

    def name_of(self, e: Expr) -> str:
        if e not in self.names:
            self.names[e] = self._leaf(e) or self._assign(self._formula(e))
        return self.names[e]

    def _assign(self, formula: str) -> str:
        name = f"t{len(self.lines)}"
        self.lines.append(f"    {name} = {formula}")
        return name

    def _leaf(self, e: Expr) -> str | None:
        if e.dtype.is_float or type(e) not in _EVALUATE:
            raise _not_index(e)
        if isinstance(e, Const):
            return f"({e.value})"
        if isinstance(e, Var):
            _var(e, dict.fromkeys(self.params, 0))
            return self.params[e.name]
        return None

    def _formula(self, e: Expr) -> str:
        match e:
            case Binary(op=op, a=a, b=b):
                x, y = self.name_of(a), self.name_of(b)
                text = f"{x} {_SYMBOLS[op]} {y}" if op in _SYMBOLS else f"{op}_({x}, {y})"
                if op in DIVISIONS and self.branches:
                    # Both branches are computed, so a division by zero must not raise an error.
                    text = f"{text} if {y} else 0"
                return text if op in COMPARISONS else self._narrowed(text, e.dtype)
            case Unary(op="neg", a=a):
                return self._narrowed(f"-{self.name_of(a)}", e.dtype)
            case Unary(a=a) if e.dtype == BOOL:
                return f"not {self.name_of(a)}"
            case Unary(a=a):
                return self._narrowed(f"~{self.name_of(a)}", e.dtype)
            case Cast(dtype, a):
                self.dtypes[f"type_{dtype}"] = dtype
                return f"narrow({self.name_of(a)}, type_{dtype})"
            case Select(cond=cond, a=a, b=b):
                c = self.name_of(cond)
                self.branches += 1
                x, y = self.name_of(a), self.name_of(b)
                self.branches -= 1
                return f"{x} if {c} else {y}"
        raise _not_index(e)

    def _narrowed(self, text: str, dtype: DType) -> str:
        if dtype in (I64, BOOL):
            return text
        self.dtypes[f"type_{dtype}"] = dtype
        return f"narrow({text}, type_{dtype})"
