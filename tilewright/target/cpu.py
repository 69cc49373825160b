"""CPU targets: instruction set, vector registers, caches, cores."""

from __future__ import annotations

from tilewright.core.node import node
from tilewright.target.calibration.cpu import BUILTIN, CpuCosts

# Extensions that multiply bf16 and accumulate in f32, the fastest first.
BF16_UNITS = {
    "x86_64": (("amx-bf16", "amx"), ("avx512bf16", "dot")),
    "aarch64": (("bf16", "dot"),),
}

# Extensions whose vectors compute in f16, twice as many lanes as in f32.
F16_UNITS = {"x86_64": "avx512fp16", "aarch64": "fullfp16"}

# A cache line; the same on all machines of these architectures.
LINE_BYTES = 64
PAGE_BYTES = 4096

# Bytes that a schedule may put on a thread's stack, which has 8 MiB where nobody asks for less.
STACK_BYTES = 512 * 1024
# The same of one buffer for which it does not ask, but which would fit there.
UNASKED_STACK_BYTES = STACK_BYTES // 2


@node
class CpuTarget:
    """One CPU, as far as the compiler needs to know it.

    `vector_bits` and `vector_registers` size register tiles; `l1`, `l2` (bytes, per core) size
    cache tiles; `l3` is shared by the `cores`. `costs` is what cost models
    read: the built-in figures, or this machine's where it was calibrated.
    """

    triple: str
    cpu: str
    features: tuple[str, ...]
    vector_bits: int
    vector_registers: int
    l1: int
    l2: int
    l3: int
    cores: int
    costs: CpuCosts = BUILTIN

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` one vector register holds; none has less than a byte."""
        return max(1, self.vector_bits // max(8, bits))

    @property
    def l1_ways(self) -> int:
        """The associativity of the L1 data cache.

        That of x86 is virtually indexed within a page, so it has a way for each page of its size;
        those of Arm's servers have four.
        """
        return max(1, self.l1 // PAGE_BYTES) if self.architecture == "x86_64" else 4

    @property
    def has_lane_fma(self) -> bool:
        """Whether an FMA takes one lane of a vector as its factor at no extra cost."""
        return self.architecture == "aarch64"

    @property
    def has_masked_loads(self) -> bool:
        """Whether one instruction loads some elements of a vector."""
        return self.architecture == "x86_64" and self.vector_bits >= 256

    @property
    def bf16_gemm(self) -> str:
        """How bf16 is multiplied: `amx` tiles, `dot` products of pairs, or not at all (empty)."""
        known = BF16_UNITS.get(self.architecture, ())
        return next((how for feature, how in known if f"+{feature}" in self.features), "")

    @property
    def rounds_to_bf16(self) -> bool:
        """Whether one instruction converts a vector of f32 to bf16."""
        return {"+avx512bf16", "+bf16"} & {*self.features} != set()

    @property
    def computes_in_f16(self) -> bool:
        """Whether vectors of f16 are multiplied and added as such."""
        return f"+{F16_UNITS.get(self.architecture)}" in self.features

    @property
    def orders_zeros(self) -> bool:
        """Whether the maximum of -0 and +0 is +0 in one instruction."""
        return self.architecture == "aarch64"

    @property
    def emits_ptx(self) -> bool:
        """Whether LLVM emits PTX instead of machine code."""
        return False

    @property
    def architecture(self) -> str:
        """`x86_64` or `aarch64`."""
        return self.triple.split("-")[0]

    def describe(self) -> str:
        """One line for people."""
        caches = "/".join(f"{size // 1024}K" for size in (self.l1, self.l2, self.l3))
        return (
            f"{self.cpu} ({self.architecture}), {self.vector_bits}-bit vectors "
            f"x {self.vector_registers}, caches {caches}, {self.cores} cores"
        )
