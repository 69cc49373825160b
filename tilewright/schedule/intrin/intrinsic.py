"""What an intrinsic is: a row of the table."""

from __future__ import annotations

from tilewright.core.node import node


@node
class MachineState:
    """What a function must set up before it uses an instruction, and put back at its end.

    `llvm` defines `void @tw.<name>.begin()` and `void @tw.<name>.end()`, and declares what the
    instructions share.
    """

    name: str
    llvm: str


@node
class Intrinsic:
    """A row: the matched block becomes the tile statement `tile`, which means the same.

    `llvm` is the text for machines of `arch` with `features`, what LLVM calls the extensions that
    it needs; without it, or elsewhere, the tile is expanded to loops. Operands are contiguous; with
    `strided` the rows of each may lie apart, and the distance in bytes is passed after its pointer.
    `state` is what the instruction needs set up. `held` names the operand that stays in registers
    of its own from one instruction to the next: its memory is never touched. With `swizzled`,
    pieces of 16 bytes of the sources change places within their rows; the sources in `panels` are
    in panels of 64 columns. With `proxy` it reads memory past the threads, which must say when what
    they have written may be read. `ahead` names the intrinsic that does the same and leaves it
    under way while the next one starts, `settle` the one that waits for those. With `box`, rows and
    columns, it is a copy that another engine does and a place in shared memory counts. One that
    `turns` a fragment leaves other elements of it with each thread, so many side by side.
    """

    pattern: str
    tile: str
    arch: str = ""
    features: tuple[str, ...] = ()
    llvm: str = ""
    strided: bool = False
    state: MachineState | None = None
    held: str = ""
    swizzled: bool = False
    panels: tuple[str, ...] = ()
    proxy: bool = False
    ahead: str = ""
    settle: str = ""
    box: tuple[int, int] | None = None
    turns: int = 0

    def available(self, arch: str, features: tuple[str, ...]) -> bool:
        """Whether a machine has the instruction; features as LLVM's `+name`."""
        needed = {f"+{feature}" for feature in self.features}
        return bool(self.llvm) and arch == self.arch and needed <= {*features}
