"""Runs an expression of primitive nodes as vector machine code, so that tests see true results.

The instructions have the flags that the compiler's own emitter gives them: a product and a sum may
be contracted to one fma, and i64 sums may not overflow.

run = jit(expression, ["x"])        # the variables, in the order of the arrays
y = run(x)                          # NumPy in, NumPy out, four lanes at a time
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import binding

from tilewright.arith.expr import Binary, Bitcast, Call, Cast, Const, Expr, Select, Unary, Var
from tilewright.core.dtypes import BOOL, I64, DType

LANES = 4
_TYPES = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double", "bool": "i1"}
_FLOAT = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv"}
_INTEGER = {"add": "add", "sub": "sub", "mul": "mul", "and": "and", "or": "or", "xor": "xor"}
_ORDER = {"lt": "lt", "le": "le", "eq": "eq", "ne": "ne"}
_INTRINSICS = {
    "fma": "fma",
    "abs": "fabs",
    "sqrt": "sqrt",
    "floor": "floor",
    "trunc": "trunc",
    "round_even": "roundeven",
    "copysign": "copysign",
}


def scalar(dtype: DType) -> str:
    return _TYPES.get(dtype.name) or f"i{dtype.bits}"


def vector(dtype: DType) -> str:
    return f"<{LANES} x {scalar(dtype)}>"


class Emitter:
    """Prints each distinct node once, as one instruction."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.names: dict[Expr, str] = {}
        self.declared: set[str] = set()

    def value(self, e: Expr) -> str:
        if e not in self.names:
            self.names[e] = self._print(e)
        return self.names[e]

    def _line(self, text: str) -> str:
        name = f"%v{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        return name

    def _print(self, e: Expr) -> str:
        match e:
            case Const():
                return _splat(e)
            case Binary():
                return self._line(self._binary(e))
            case Unary(op="neg", a=a) if a.dtype.is_float:
                return self._line(f"fneg {vector(a.dtype)} {self.value(a)}")
            case Unary(op="not", a=a):
                ones = _splat(Const(-1, a.dtype) if a.dtype != BOOL else Const(True, BOOL))
                return self._line(f"xor {vector(a.dtype)} {self.value(a)}, {ones}")
            case Select(cond=c, a=a, b=b):
                t = vector(a.dtype)
                args = f"{self.value(c)}, {t} {self.value(a)}, {t} {self.value(b)}"
                return self._line(f"select {vector(BOOL)} {args}")
            case Bitcast(dtype, a):
                return self._line(f"bitcast {vector(a.dtype)} {self.value(a)} to {vector(dtype)}")
            case Cast(dtype, a):
                return self._line(
                    f"{_cast(a.dtype, dtype)} {vector(a.dtype)} {self.value(a)} to {vector(dtype)}"
                )
            case Call():
                return self._line(self._call(e))
        raise AssertionError(f"{e} is not primitive")

    def _binary(self, e: Binary) -> str:
        t, a, b = vector(e.a.dtype), self.value(e.a), self.value(e.b)
        if e.a.dtype.is_float:
            if e.op in _ORDER:
                return f"fcmp {'une' if e.op == 'ne' else 'o' + e.op} {t} {a}, {b}"
            if e.op in ("min", "max"):
                return self._intrinsic(f"{e.op}imum", e.dtype, [a, b])
            flag = "" if e.op == "div" else "contract "
            return f"{_FLOAT[e.op]} {flag}{t} {a}, {b}"
        unsigned = e.a.dtype.kind == "uint"
        if e.op in _ORDER:
            prefix = "" if e.op in ("eq", "ne") else "u" if unsigned else "s"
            return f"icmp {prefix}{e.op} {t} {a}, {b}"
        shift = {"shl": "shl", "shr": "lshr" if unsigned else "ashr"}
        flag = "nsw " if e.dtype == I64 and e.op in ("add", "sub", "mul") else ""
        return f"{(_INTEGER | shift)[e.op]} {flag}{t} {a}, {b}"

    def _call(self, e: Call) -> str:
        args = [self.value(a) for a in e.args]
        if e.fn == "isnan":
            return f"fcmp uno {vector(e.args[0].dtype)} {args[0]}, {args[0]}"
        return self._intrinsic(_INTRINSICS[e.fn], e.dtype, args)

    def _intrinsic(self, name: str, dtype: DType, args: Sequence[str]) -> str:
        t = vector(dtype)
        full = f"@llvm.{name}.v{LANES}{ {'f32': 'f32', 'f64': 'f64'}[dtype.name] }"
        self.declared.add(f"declare {t} {full}({', '.join([t] * len(args))})")
        return f"call {t} {full}({', '.join(f'{t} {a}' for a in args)})"


def _splat(e: Const) -> str:
    if e.dtype.is_float:
        value = struct.unpack("<Q", struct.pack("<d", e.value))[0]
        text = f"0x{value:016X}"
        assert e.dtype.name != "f32" or np.isnan(e.value) or np.float32(e.value) == e.value, (
            f"{e.value!r} is no f32"
        )
    else:
        text = str(int(e.value))
    return "<" + ", ".join([f"{scalar(e.dtype)} {text}"] * LANES) + ">"


def _cast(source: DType, target: DType) -> str:
    if source.is_float and target.is_float:
        return "fpext" if target.bits > source.bits else "fptrunc"
    if source.is_float:
        return "fptoui" if target.kind == "uint" else "fptosi"
    if target.is_float:
        return "sitofp" if source.kind == "int" else "uitofp"
    if target.bits < source.bits:
        return "trunc"
    return "zext" if source == BOOL or source.kind == "uint" else "sext"


def llvm_text(e: Expr, variables: Sequence[tuple[str, DType]]) -> str:
    emitter = Emitter()
    head = []
    for name, dtype in variables:
        t = vector(dtype)
        head.append(f"  %p.{name} = getelementptr {scalar(dtype)}, ptr %{name}, i64 %i")
        head.append(f"  %x.{name} = load {t}, ptr %p.{name}, align 1")
        emitter.names[Var(name, dtype)] = f"%x.{name}"
    result, out, t = emitter.value(e), e.dtype, vector(e.dtype)
    if out == BOOL:
        emitter.lines.append(f"  %wide = zext {t} {result} to <{LANES} x i8>")
        result, t = "%wide", f"<{LANES} x i8>"
    pointers = ", ".join(f"ptr %{name}" for name, _ in variables)
    return "\n".join(
        [
            *sorted(emitter.declared),
            f"define void @f({pointers}, ptr %out, i64 %n) {{",
            "entry:\n  br label %loop",
            "loop:\n  %i = phi i64 [0, %entry], [%next, %loop]",
            *head,
            *emitter.lines,
            f"  %p.out = getelementptr {'i8' if out == BOOL else scalar(out)}, ptr %out, i64 %i",
            f"  store {t} {result}, ptr %p.out, align 1",
            f"  %next = add i64 %i, {LANES}",
            "  %more = icmp ult i64 %next, %n",
            "  br i1 %more, label %loop, label %end",
            "end:\n  ret void\n}",
        ]
    )


def jit(e: Expr, variables: Sequence[tuple[str, DType]]) -> Callable[..., np.ndarray[Any, Any]]:
    """The expression as a function of arrays, one for each variable."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(llvm_text(e, variables))
    module.verify()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=2,
        jit=True,
    )
    passes = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(2))
    passes.getModulePassManager().run(module, passes)
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    native = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * (len(variables) + 1), ctypes.c_int64)(
        engine.get_function_address("f")
    )

    def run(*arrays: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        assert engine is not None  # holds the machine code
        size = arrays[0].size
        padded = -(-size // LANES) * LANES
        inputs = [
            np.concatenate([a.ravel(), np.ones(padded - size, a.dtype)]).astype(d.numpy, copy=False)
            for a, (_, d) in zip(arrays, variables, strict=True)
        ]
        result = np.empty(padded, e.dtype.numpy)
        if size:
            native(*[a.ctypes.data for a in inputs], result.ctypes.data, padded)
        return result[:size].reshape(arrays[0].shape)

    return run
