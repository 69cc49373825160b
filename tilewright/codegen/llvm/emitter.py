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
from tilewright.arith.expr import FALSE, Binary, Broadcast, Const, Expr, Load
from tilewright.arith.walk import contains
from tilewright.codegen.llvm.available_loads import AvailableLoads
from tilewright.codegen.llvm.builder import FunctionBuilder
from tilewright.codegen.llvm.scopes import CheapExpressions, depth_of
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


def split_constant(index: Expr) -> tuple[Expr, int]:
    """An index as a sum of what is not known and what is."""
    distance = 0
    while isinstance(index, Binary) and index.op in ("add", "sub") and isinstance(index.b, Const):
        distance += int(index.b.value) if index.op == "add" else -int(index.b.value)
        index = index.a
    return index, distance


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
        # The scopes of variables that do not have their values from the beginning.
        self._depths: dict[str, int] = {}
        self._cheap = CheapExpressions()
        self._block = fn.block

    def bind(self, name: str, register: str) -> None:
        """Let a variable have a value in the innermost scope."""
        self.values[name] = register
        self._depths[name] = self.fn.depth

    def place(self, buffer: str, pointer: str) -> None:
        """Let a buffer lie somewhere: unrolled copies of a loop have buffers of one name."""
        if buffer in self.pointers:
            self.fn.forget_addresses(buffer)
        self.pointers[buffer] = pointer

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
        if found is None and pure:
            found = self._emit_outside(e)
        elif found is None:
            found = self._emit(e)
            self.loads.keep(e, found)
        return found

    def _emit_outside(self, e: Expr) -> str:
        """Emit `e`, which reads no memory, in the outermost scope that it may go to."""
        depth = self._outermost(e)
        with self.fn.at_depth(depth):
            found = self._emit(e)
        self.fn.remember(e, found, depth)
        return found

    def _outermost(self, e: Expr) -> int:
        if not self.fn.hoists:
            return self.fn.depth
        here = self.fn.scopes[-1]
        limit = here.cheap if e in self._cheap else here.costly
        return max(limit, depth_of(e, self._depths))

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
        """The address of one element, which exists."""
        # A name for the address as an expression: it is the same wherever the index is.
        return self._pointer(Load(buffer, (index,), dtype), " inbounds")

    def possible_pointer(self, buffer: str, dtype: DType, index: Expr) -> str:
        """The address of what may be no element: it is only computed."""
        return self._pointer(Load(buffer, (index,), dtype, FALSE), "")

    def _pointer(self, place: Load, flag: str) -> str:
        (index,) = place.indices
        pure = self.is_pure(index)
        found = self.fn.lookup(place) if pure else None
        if found is not None:
            return found
        start, distance = split_constant(index)
        if self.fn.hoists and distance and not isinstance(start, Const) and pure:
            # So all elements at known distances share one address, as LLVM wants to have them. It
            # may be that of no element itself.
            base = self.possible_pointer(place.buffer, place.dtype, start)
            found = self._offset(place.dtype, "", base, str(distance))
            self.fn.remember(place, found)
            return found
        depth = self._outermost(index) if pure else self.fn.depth
        offset = self.value(index)
        with self.fn.at_depth(depth):
            found = self._offset(place.dtype, flag, self.pointers[place.buffer], offset)
        if pure:
            self.fn.remember(place, found, depth)
        return found

    def _offset(self, dtype: DType, flag: str, base: str, offset: str) -> str:
        return self.fn.let(
            f"getelementptr{flag} {memory_type(dtype)}, ptr {base}, i64 {offset}", "p"
        )

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
