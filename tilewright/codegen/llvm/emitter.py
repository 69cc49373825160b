"""The registers of expressions: what is known, loaded or named while a function is emitted.

`ValueEmitter` has all that the emitting functions of single nodes need. `expressions.py` adds the
table of those functions, so that they need not import it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from math import gcd
from typing import TypeGuard

from tilewright.arith.affine import to_affine
from tilewright.arith.bounds import Interval, bound
from tilewright.arith.expr import Binary, Broadcast, Const, Expr, Load
from tilewright.arith.walk import contains
from tilewright.codegen.llvm.available_loads import AvailableLoads
from tilewright.codegen.llvm.builder import FunctionBuilder
from tilewright.codegen.llvm.types import (
    intrinsic_suffix,
    is_widened,
    literal,
    memory_type,
    register_type,
    splat,
)
from tilewright.core.dtypes import DType


def divisor(index: Expr) -> int:
    """What an index is surely a multiple of; 0 where it is 0."""
    form = to_affine(index)
    parts = [form.constant]
    for atom, factor in form.coeffs.items():
        both = (divisor(atom.a), divisor(atom.b)) if _is_xor(atom) else (1,)
        # Bits that both sides lack, the result lacks as well.
        parts.append(factor * min((n & -n for n in both if n), default=0))
    return gcd(*parts)


def _is_xor(e: Expr) -> TypeGuard[Binary]:
    return isinstance(e, Binary) and e.op == "xor"


class ValueEmitter(ABC):
    """Emits expressions into a function.

    `values` maps variable names to registers, `pointers` buffer names to base pointers, `ranges`
    variable names to their bounds (used to choose unsigned division); `own` are the buffers on the
    kernel's stack.
    """

    def __init__(
        self,
        fn: FunctionBuilder,
        values: dict[str, str],
        pointers: dict[str, str],
        own: Collection[str] = (),
    ) -> None:
        self.fn = fn
        self.values = values
        self.pointers = pointers
        self.ranges: dict[str, Interval] = {}
        # The known alignment of buffers, in bytes.
        self.alignments: dict[str, int] = {}
        # The buffers that LLVM must not put into registers.
        self.volatile: set[str] = set()
        self.loads = AvailableLoads(own)
        self._block = fn.block

    def begin_statement(self) -> None:
        """Forget what was loaded in another basic block, or only for the statement before."""
        self.loads.begin_statement()
        if self.fn.block != self._block:
            self._block = self.fn.block
            self.loads.forget()

    def value(self, e: Expr) -> str:
        """The register (or literal) that holds `e`."""
        if isinstance(e, Const):
            return literal(e.value, e.dtype)
        pure = self.is_pure(e)
        found = self.fn.lookup(e) if pure else self.loads.find(e)
        if found is None:
            found = self._emit(e)
            if pure:
                self.fn.known[-1][e] = found
            else:
                self.loads.keep(e, found)
        return found

    @abstractmethod
    def _emit(self, e: Expr) -> str:
        """Emit the instructions of one node; gives its register."""

    def vector(self, e: Expr, lanes: int) -> str:
        """`e` as a vector of `lanes`, broadcast if it is a scalar."""
        if lanes == 1 or e.lanes == lanes:
            return self.value(e)
        if isinstance(e, Const):
            return splat(e.value, e.dtype, lanes)
        key = Broadcast(e, lanes)
        return self.value(key)

    def intrinsic(
        self, name: str, dtype: DType, lanes: int, args: list[str], flags: str = ""
    ) -> str:
        """Call an LLVM intrinsic whose operands and result have one type."""
        kind = register_type(dtype, lanes)
        full = f"llvm.{name}.{intrinsic_suffix(dtype, lanes)}"
        self.fn.module.declare(full, f"{kind} ({', '.join([kind] * len(args))})")
        given = ", ".join(f"{kind} {a}" for a in args)
        return self.fn.let(f"call {flags}{kind} @{full}({given})")

    def element_pointer(self, buffer: str, dtype: DType, index: Expr) -> str:
        """The address of one element."""
        # A name for the address as an expression: it is the same wherever the index is.
        place = Load(buffer, (index,), dtype)
        pure = self.is_pure(index)
        found = self.fn.lookup(place) if pure else None
        if found is None:
            found = self.fn.let(
                f"getelementptr inbounds {memory_type(dtype)}, ptr {self.pointers[buffer]}, "
                f"i64 {self.value(index)}",
                "p",
            )
            if pure:
                self.fn.known[-1][place] = found
        return found

    def alignment(self, buffer: str, dtype: DType, index: Expr) -> int:
        """The bytes of which the address of an element is surely a multiple."""
        begin = self.alignments.get(buffer)
        if begin is None:
            return dtype.alignment
        apart = divisor(index) * dtype.bytes
        return max(dtype.alignment, min(begin, apart & -apart or begin))

    def to_register(self, memory: str, dtype: DType, lanes: int) -> str:
        """A value as loaded from memory, in its register type."""
        if not is_widened(dtype):
            return memory
        return self.fn.let(
            f"trunc {memory_type(dtype, lanes)} {memory} to {register_type(dtype, lanes)}"
        )

    def to_memory(self, value: str, dtype: DType, lanes: int) -> str:
        """A value in the type it has in memory."""
        if not is_widened(dtype):
            return value
        return self.fn.let(
            f"zext {register_type(dtype, lanes)} {value} to {memory_type(dtype, lanes)}"
        )

    def lane(self, vector: str, kind: str, lane: int) -> str:
        """One element of a vector."""
        return self.fn.let(f"extractelement {kind} {vector}, i64 {lane}")

    def nonnegative(self, e: Expr) -> bool:
        """Whether `e` is known never to be negative."""
        return self._at_least(e, 0)

    def positive(self, e: Expr) -> bool:
        """Whether `e` is known always to be greater than zero."""
        return self._at_least(e, 1)

    def _at_least(self, e: Expr, least: int) -> bool:
        low = bound(e, self.ranges).lo
        return low is not None and low >= least

    def is_pure(self, e: Expr) -> bool:
        """Whether `e` reads no memory."""
        return not contains(e, Load)
