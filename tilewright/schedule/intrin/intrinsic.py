"""What an intrinsic is: an entry of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from tilewright.core.node import node


@node
class MachineState:
    """What a function must set up before it uses an instruction, and restore at its end.

    `llvm` defines `void @tw.<name>.begin()` and `void @tw.<name>.end()`, and declares what the
    instructions share.
    """

    name: str
    llvm: str


@node
class Intrinsic:
    """An instruction: the matched block becomes the tile statement `tile`, which means the same.

    `llvm` is the text for machines of `arch` with `features`, LLVM's names of the extensions that
    it needs; without it, or elsewhere, the tile is expanded to loops. Operands are contiguous; with
    `strided` each has a row stride, passed in bytes after its pointer. `state` is what the
    instruction needs set up. The other fields:

    - `register_operand`: the operand that stays in registers of its own between instructions (AMX
      tiles); its memory is never touched.
    - `swizzled`: 16-byte vectors of the sources are permuted within their rows.
    - `swizzle_panels`: the sources that are stored in panels of 128-byte rows.
    - `async_proxy`: it reads shared memory through the async proxy; stores need a fence before it.
    - `async_variant`: the intrinsic that does the same and stays in flight while the next starts.
    - `wait`: the intrinsic that waits for those.
    - `in_flight`: how many asynchronous products may still run behind it, `None` where it does not
      wait for any.
    - `tma_box`: the box of one TMA copy, which an mbarrier in shared memory counts: rows and
      columns, or, of one of several matrices, see `finalize/flatten.py`, four sizes.
    - `zero_fills`: what it reads outside of its source, a matrix, is zero; such a tile is a padded
      copy.
    - `lane_elements`: neighbours in a row that a lane has after a shuffle of a fragment; 0 if none.
    """

    pattern: str
    tile: str
    arch: str = ""
    features: tuple[str, ...] = ()
    llvm: str = ""
    strided: bool = False
    state: MachineState | None = None
    register_operand: str = ""
    swizzled: bool = False
    swizzle_panels: tuple[str, ...] = ()
    async_proxy: bool = False
    async_variant: str = ""
    wait: str = ""
    in_flight: int | None = None
    tma_box: tuple[int, ...] | None = None
    zero_fills: bool = False
    lane_elements: int = 0

    def available(self, arch: str, features: tuple[str, ...]) -> bool:
        """Whether a machine has the instruction; features as LLVM's `+name`."""
        needed = {f"+{feature}" for feature in self.features}
        return bool(self.llvm) and arch == self.arch and needed <= {*features}


Row = Intrinsic | Callable[[], Intrinsic]
"""An entry of a table, or what makes it."""


class IntrinsicTable(Mapping[str, Intrinsic]):
    """Intrinsics by name; one that is given by a function is made when it is first asked for.

    Hundreds of tiles for GPUs are long texts, which a compilation needs few of, or none.
    """

    def __init__(self, rows: Mapping[str, Row]) -> None:
        self.rows = dict(rows)

    def __getitem__(self, name: str) -> Intrinsic:
        row = self.rows[name]
        if not isinstance(row, Intrinsic):
            row = self.rows[name] = row()
        return row

    def __contains__(self, name: object) -> bool:
        return name in self.rows

    def __iter__(self) -> Iterator[str]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)


def function_text(name: str, params: str, lines: Iterable[str]) -> str:
    """The LLVM definition of an intrinsic."""
    body = "\n".join(f"  {line}" for line in lines)
    return f"define internal void @tw.{name}({params}) alwaysinline {{\n{body}\n  ret void\n}}"
