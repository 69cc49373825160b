"""GPU targets: what the compiler knows of an NVIDIA GPU, as data.

`resolve("cuda")` is the default machine, `resolve("cuda -arch=sm_90a")` one by its architecture.
Nothing here asks a driver: a machine without a GPU compiles for one.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.errors import ConfigError
from tilewright.core.node import node

_KIB, _MIB = 1024, 1024 * 1024
PREFIX = "cuda"
# What a thread loads or stores at once at most.
ACCESS_BITS = 128


@node
class MatrixShape:
    """A product that one instruction computes: m x n x k of `operands`, summed in f32.

    8-bit integers are summed in i32; one operand may be signed and the other not.
    """

    operands: str
    m: int
    n: int
    k: int


@node
class GpuTarget:
    """One GPU, as far as the compiler needs to know it.

    A block of threads runs on one multiprocessor, in warps of `warp` threads; a multiprocessor has
    `registers` of 32 bits and `shared` bytes for all blocks that it runs at once. A block may have
    `threads_per_block` threads and `static_shared` bytes without asking for more. The rates are
    those of the data sheet, in bytes and operations a second; `matrix_rate` is that of products of
    16 bits, summed in f32. The narrower elements are, the more of them are multiplied at once.
    """

    triple: str
    cpu: str
    features: tuple[str, ...]
    multiprocessors: int
    warp: int
    warps: int
    threads_per_block: int
    registers: int
    registers_per_thread: int
    shared: int
    static_shared: int
    l2: int
    memory_rate: int
    f32_rate: int
    matrix_rate: int
    matrix_shapes: tuple[MatrixShape, ...]

    @property
    def architecture(self) -> str:
        """`nvptx64`."""
        return self.triple.split("-")[0]

    @property
    def capability(self) -> tuple[int, int]:
        """The compute capability that the code needs: `(9, 0)` for sm_90a."""
        digits = self.cpu.removeprefix("sm_").rstrip("af")
        return int(digits[:-1]), int(digits[-1])

    @property
    def block_shared(self) -> int:
        """The bytes of shared memory that one block may ask for: the system takes some of each."""
        return self.shared - _KIB

    def lanes(self, bits: int) -> int:
        """How many elements of `bits` a thread moves at once; none has less than a byte."""
        return ACCESS_BITS // max(8, bits)

    @property
    def multiplies_by_lane(self) -> bool:
        """Whether elements of what was loaded at once can be used one by one at no extra cost."""
        return True

    @property
    def starts_early(self) -> bool:
        """Whether a launch may begin while the one before it ends, and wait for that by itself."""
        return self.capability >= (9, 0)

    @property
    def emits_text(self) -> bool:
        """Whether LLVM gives assembly that the driver turns into machine code."""
        return True

    def describe(self) -> str:
        """One line for people."""
        return (
            f"{self.cpu} ({self.architecture}), {self.multiprocessors} multiprocessors of "
            f"{self.warps} warps, {self.registers // _KIB}K registers and "
            f"{self.shared // _KIB}K shared memory each, L2 {self.l2 // _MIB}M"
        )


_HALF = tuple(MatrixShape(kind, 16, 8, 16) for kind in ("f16", "bf16"))
_BYTES = tuple(MatrixShape(kind, 16, 8, 32) for kind in ("i8", "u8"))
_SM80 = (*_HALF, MatrixShape("tf32", 16, 8, 8), *_BYTES)
# By four warps at once; the architecture alone has it, not those that follow.
_SM90A = (
    *_SM80,
    *(MatrixShape(kind, 64, 256, 16) for kind in ("f16", "bf16")),
    MatrixShape("tf32", 64, 256, 8),
    *(MatrixShape(kind, 64, 256, 32) for kind in ("i8", "u8")),
)

# The version of PTX that instructions of an architecture need: one that multiplies signed with
# unsigned bytes by four warps came with CUDA 12.4. Others take the oldest that knows them.
_TEXT = {"sm_90a": ("+ptx84",)}


def _nvidia(
    arch: str,
    multiprocessors: int,
    warps: int,
    shared: int,
    l2: int,
    rate: int,
    rates: tuple[int, int],
) -> GpuTarget:
    return GpuTarget(
        "nvptx64-nvidia-cuda",
        arch,
        _TEXT.get(arch, ()),
        multiprocessors,
        32,
        warps,
        1024,
        65536,
        255,
        shared * _KIB,
        48 * _KIB,
        l2 * _MIB,
        rate * 10**9,
        rates[0] * 10**12,
        rates[1] * 10**12,
        _SM90A if arch == "sm_90a" else _SM80,
    )


NAMED: dict[str, GpuTarget] = {
    "sm_80": _nvidia("sm_80", 108, 64, 164, 40, 1555, (19, 312)),
    "sm_86": _nvidia("sm_86", 84, 48, 100, 6, 936, (35, 71)),
    "sm_89": _nvidia("sm_89", 128, 48, 100, 72, 1008, (82, 165)),
    "sm_90": _nvidia("sm_90", 132, 64, 228, 60, 4800, (67, 989)),
    "sm_90a": _nvidia("sm_90a", 132, 64, 228, 60, 4800, (67, 989)),
}
DEFAULT = "sm_90a"


def with_tf32(target: GpuTarget) -> GpuTarget:
    """A GPU whose products of f32 may round their operands to tf32."""
    rounded = tuple(
        replace(s, operands="f32") for s in target.matrix_shapes if s.operands == "tf32"
    )
    return replace(target, matrix_shapes=(*target.matrix_shapes, *rounded))


def target_names() -> tuple[str, ...]:
    """The names that `resolve` knows."""
    return (PREFIX, *(f"{PREFIX} -arch={arch}" for arch in NAMED))


def resolve(name: str) -> GpuTarget:
    """The target called `name`: `cuda`, perhaps with `-arch=`."""
    word, *options = name.split()
    arch = DEFAULT
    for option in options:
        key, _, arch = option.partition("=")
        if key != "-arch" or arch not in NAMED:
            raise _unknown(name)
    if word != PREFIX:
        raise _unknown(name)
    return NAMED[arch]


def _unknown(name: str) -> ConfigError:
    return ConfigError(
        "target.unknown",
        f"no target named {name!r}",
        help=f"one of {', '.join(target_names())}",
    )
