"""The primitives as methods of `Schedule`, with the types and documentation that an editor shows.

A method has the signature and the docstring of its primitive, without the function; it returns the
names of what the primitive makes. A test compares both with the table of primitives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from tilewright.schedule.trace import Arg, Step


class PrimitiveMethods(ABC):
    """One method per primitive; each applies a step and records it in the trace."""

    @abstractmethod
    def apply(self, step: Step) -> Any:
        """Run one step and record it; the result is the names of what it makes."""

    def _step(self, primitive: str, *args: object) -> None:
        self.apply(Step(primitive, tuple(map(_recorded, args))))

    def _name(self, primitive: str, *args: object) -> str:
        name: str = self.apply(Step(primitive, tuple(map(_recorded, args))))
        return name

    def _names(self, primitive: str, *args: object) -> tuple[str, ...]:
        names: tuple[str, ...] = self.apply(Step(primitive, tuple(map(_recorded, args))))
        return names

    def add_unit_loop(self, first: str = "") -> str:
        """Put a loop of one iteration around all nests from that of block `first` on."""
        return self._name("add_unit_loop", first)

    def annotate(self, name: str, key: str, value: int | str) -> None:
        """Attach `key=value` to the loop or block called `name`."""
        self._step("annotate", name, key, value)

    def bind(self, loop: str, level: str) -> None:
        """Run the iterations of a loop on thread blocks, or on the threads or warps of a block."""
        self._step("bind", loop, level)

    def blockize(self, loop: str) -> str:
        """Make a block of a loop that holds one block."""
        return self._name("blockize", loop)

    def cache_read(self, block: str, buffer: str, scope: str) -> str:
        """Let a block read a copy of a buffer that it reads."""
        return self._name("cache_read", block, buffer, scope)

    def cache_write(self, block: str, scope: str) -> str:
        """Let a block write to a new buffer, and copy that to the old one."""
        return self._name("cache_write", block, scope)

    def compute_at(self, block: str, loop: str) -> tuple[str, ...]:
        """Compute a block inside a loop of its consumers: what they need in one iteration."""
        return self._names("compute_at", block, loop)

    def decompose_reduction(self, block: str, loop: str) -> str:
        """Initialize a reduction in a separate block, just before a loop around the reduction."""
        return self._name("decompose_reduction", block, loop)

    def fuse(self, *loops: str) -> str:
        """Make one loop of perfectly nested loops, given outermost first."""
        return self._name("fuse", *loops)

    def inline(self, block: str) -> None:
        """Substitute a block into all its readers and remove it with its buffer."""
        self._step("inline", block)

    def narrow_accumulator(self, block: str) -> None:
        """Accumulate in the type of the products, before they are widened."""
        self._step("narrow_accumulator", block)

    def pad(self, block: str, iterator: str, multiple: int, fill: str = "") -> None:
        """Round a spatial iterator, its loop and the buffer that it indexes up to a multiple."""
        self._step("pad", block, iterator, multiple, *([fill] if fill else []))

    def pad_reduction(self, block: str, iterator: str, multiple: int) -> None:
        """Round a reduction iterator and its loop up to a multiple, by products of zeros."""
        self._step("pad_reduction", block, iterator, multiple)

    def parallel(self, loop: str) -> None:
        """Run the iterations of a loop on several threads."""
        self._step("parallel", loop)

    def reindex_cache_read(self, block: str, buffer: str, scope: str) -> str:
        """Copy what a block reads of a buffer, in a nest of its own before that of the block."""
        return self._name("reindex_cache_read", block, buffer, scope)

    def reorder(self, *loops: str) -> None:
        """Put loops of a perfect nest into this order, outermost first."""
        self._step("reorder", *loops)

    def reuse_buffer(self, buffer: str, block: str) -> None:
        """Keep an intermediate result where its last reader, a block, writes."""
        self._step("reuse_buffer", buffer, block)

    def reverse_compute_at(self, block: str, loop: str) -> tuple[str, ...]:
        """Run a block inside a loop of its producers, for what they finish in one iteration."""
        return self._names("reverse_compute_at", block, loop)

    def reverse_inline(self, block: str) -> None:
        """Merge an elementwise block into the producer of the allocation that it reads."""
        self._step("reverse_inline", block)

    def rfactor(self, block: str, loop: str, own_start: bool = False) -> str:
        """Reduce into one partial result per iteration of a loop, then over the partial results."""
        return self._name("rfactor", block, loop, *([own_start] if own_start else []))

    def set_scope(self, buffer: str, scope: str) -> None:
        """Put an allocation into another kind of memory."""
        self._step("set_scope", buffer, scope)

    def split(self, loop: str, factors: Sequence[int | None]) -> tuple[str, ...]:
        """Split a loop into one loop a factor, outermost first; `None` is what is left over."""
        return self._names("split", loop, factors)

    def tensorize(self, block: str, intrinsic: str) -> None:
        """Let an intrinsic compute the body of a block."""
        self._step("tensorize", block, intrinsic)

    def tile_attention(self, rows: int, keys: int, parts: int = 1) -> None:
        """Have attention in tiles of rows and keys, the keys in so many parts."""
        self._step("tile_attention", rows, keys, *([] if parts == 1 else [parts]))

    def to_gemm(
        self, block: str, m: int, n: int, k: int, a: str = "km", b: str = "kn", swap_ab: int = 0
    ) -> None:
        """Bring a sum of products, and the block that reads it, into the form of a GEMM."""
        self._step("to_gemm", block, m, n, k, a, b, swap_ab)

    def transform_layout(self, buffer: str, parts: Sequence[Sequence[int]]) -> None:
        """Store a buffer in another layout and rewrite every access to it."""
        self._step("transform_layout", buffer, parts)

    def unroll(self, loop: str) -> None:
        """Repeat the body of a loop in the code; its extent must be constant."""
        self._step("unroll", loop)

    def vectorize(self, loop: str) -> None:
        """Run all iterations of a loop as one vector operation; its extent must be constant."""
        self._step("vectorize", loop)


def _recorded(value: object) -> Arg:
    """An argument as the trace keeps it."""
    if isinstance(value, list | tuple):
        return tuple(map(_recorded, value))
    assert value is None or isinstance(value, str | int), f"no trace can hold {value!r}"
    return value
