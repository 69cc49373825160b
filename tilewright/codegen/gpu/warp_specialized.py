"""Blocks of threads of which some only copy: what all such kernels have.

    for b in grid(320) {persistent=132} {      132 blocks, each for b, b + 132, ...:
      for k in serial(n) {pipeline_stages=2, warp_specialized=1} {          one thread apart:
        copy step k to K               →        copy to K, as soon as its room is free
        S = A * K                             the others:
      }                                         wait for the copy; S = A * K; say that room is free
    }

Blocks are as many as run at once, and each goes through several iterations of the grid loop: while
results are written, the next operands are copied. Places in shared memory count, for each ring of
rooms and step, the copies that have come and the warps that are done with it; their numbers go on
from turn to turn.

Threads that copy need few registers, and give theirs to the others. What these do with a step is
told by `flash_attention.py` and `pingpong_gemm.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import as_int, const
from tilewright.codegen.gpu.allreduce import WARP, barrier
from tilewright.codegen.gpu.mainloop import Ring, products
from tilewright.finalize.gpu.warp_specialize import MBARRIERS
from tilewright.ir.loop.annotations import PIPELINE_STAGES
from tilewright.ir.loop.nodes import Alloc, For, Region, Stmt, Tile
from tilewright.ir.loop.thread_mapping import THREAD
from tilewright.ir.loop.walk import statements
from tilewright.schedule.intrin.nvidia.tma import FENCE, INIT
from tilewright.schedule.intrin.table import INTRINSICS

if TYPE_CHECKING:
    from tilewright.codegen.gpu.nvptx import LaunchEmitter

# The number of blocks.
BLOCKS = "llvm.nvvm.read.ptx.sreg.nctaid.x"
BLOCK = "llvm.nvvm.read.ptx.sreg.ctaid.x"
# Threads that multiply at once, and the registers of a multiprocessor; those come in eights, and a
# thread has no more than so many.
GROUP, REGISTERS, UNIT, MOST = 128, 65536, 8, 248
# One thread of a warp says that it is done.
LEAVE = (
    "{\\0A.reg .pred p;\\0Asetp.eq.u32 p, $1, 0;\\0A"
    "@p mbarrier.arrive.shared::cta.b64 _, [$0];\\0A}"
)


class Apart(ABC):
    """Emits a launch whose blocks have such a loop.

    A thread that only copies keeps a `few` registers.
    """

    few = 24

    def __init__(self, emitter: LaunchEmitter, walk: For, rings: Sequence[Ring]) -> None:
        self.em = emitter
        self.fn = emitter.fn
        self.ex = emitter.expressions
        self.walk = walk
        self.rings = rings
        self.stages = PIPELINE_STAGES.of(walk)

    @abstractmethod
    def _copy_all(self) -> None:
        """What the thread does that copies."""

    @abstractmethod
    def _work(self) -> None:
        """What the others do."""

    def emit(self) -> None:
        """The whole kernel."""
        for _, s in statements(self.em.launch.body):
            if isinstance(s, Alloc):
                self.em.allocate(s.buffer)
        self.bases = {name: self.ex.pointers[name] for r in self.rings for name in r.buffers}
        self._start_counters()
        fn, threads = self.fn, self.em.launch.workers
        work, copy, end = fn.label("work"), fn.label("copy"), fn.label("end")
        number = self.ex.values[THREAD]
        main = fn.let(f"icmp ult i64 {number}, {threads}")
        fn.emit(f"br i1 {main}, label %{work}, label %{copy}")
        fn.start(copy)
        self._asm(f"setmaxnreg.dec.sync.aligned.u32 {self.few};")
        one = fn.label("one")
        first = fn.let(f"icmp eq i64 {number}, {threads}")
        fn.emit(f"br i1 {first}, label %{one}, label %{end}")
        fn.start(one)
        with fn.scope():
            self._copy_all()
        fn.emit(f"br label %{end}")
        fn.start(work)
        self._asm(f"setmaxnreg.inc.sync.aligned.u32 {self._registers()};")
        self.ex.ranges[THREAD] = Interval(0, threads - 1)
        with fn.scope():
            self._work()
        fn.emit(f"br label %{end}")
        fn.start(end)

    def _registers(self) -> int:
        """The registers of a thread that computes: what is left of those of all."""
        working = self.em.launch.workers // GROUP
        each = REGISTERS // (GROUP * (working + 1)) // UNIT * UNIT
        return min(MOST, (each * (working + 1) - self.few) // working // UNIT * UNIT)

    def _start_counters(self) -> None:
        fn = self.fn
        fn.module.declare(INIT, "void (ptr addrspace(3), i32)")
        yes, done = fn.label("init"), fn.label("ready")
        first = fn.let(f"icmp eq i64 {self.ex.values[THREAD]}, 0")
        fn.emit(f"br i1 {first}, label %{yes}, label %{done}")
        fn.start(yes)
        warps = self.em.launch.threads // WARP
        for ring, about in enumerate(self.rings):
            for free, count in enumerate((len(about.copies), warps)):
                for stage in range(self.stages):
                    self._start_counter(str((2 * ring + free) * self.stages + stage), count)
        for place, count in self._further_counters():
            self._start_counter(place, count)
        fn.emit(FENCE)
        fn.emit(f"br label %{done}")
        fn.start(done)
        barrier(self.ex)

    def _start_counter(self, index: str, count: int) -> None:
        place = self._near(index)
        self.fn.emit(f"call void @{INIT}(ptr addrspace(3) {place}, i32 {count})")

    def _further_counters(self) -> Iterable[tuple[str, int]]:
        """Places that count something else, and how far."""
        return ()

    # Places that count: of each ring, whether a step is there, and whether its room is free.

    def _place(self, index: str) -> str:
        base = self.ex.pointers[MBARRIERS]
        return self.fn.let(f"getelementptr i64, ptr {base}, i32 {index}", "p")

    def _near(self, index: str) -> str:
        return self.fn.let(f"addrspacecast ptr {self._place(index)} to ptr addrspace(3)", "n")

    def _index(self, ring: int, free: bool, step: str) -> str:
        room = self.fn.let(f"urem i32 {step}, {self.stages}")
        return self.fn.let(f"add i32 {room}, {(2 * ring + free) * self.stages}")

    def _await(self, ring: int, free: bool, step: str) -> None:
        """Wait for what a step reads, or for its room, of which the first turn is free."""
        fn = self.fn
        turn = fn.let(f"udiv i32 {step}, {self.stages}")
        turn = fn.let(f"add i32 {turn}, {int(free)}")
        odd = fn.let(f"and i32 {turn}, 1")
        self.em.wait_at(f"ptr {self._place(self._index(ring, free, step))}", odd)

    def _leave(self, ring: int, step: str, unless: str = "false") -> None:
        """A warp does not need the room of a step any more, unless a condition holds."""
        self._arrive(self._index(ring, True, step), unless)

    def _arrive(self, index: str, unless: str = "false") -> None:
        """A place counts one more warp, unless a condition holds."""
        fn = self.fn
        lane = fn.let(f"and i64 {self.ex.values[THREAD]}, {WARP - 1}")
        narrow = fn.let(f"trunc i64 {lane} to i32")
        who = fn.let(f"select i1 {unless}, i32 {WARP}, i32 {narrow}")
        near = self._near(index)
        self._asm(LEAVE, "l,r", f"ptr addrspace(3) {near}, i32 {who}")

    def _room(self, ring: int, step: str) -> None:
        """Let the buffers of a ring be the room of a step."""
        fn = self.fn
        room = fn.let(f"urem i32 {step}, {self.stages}")
        for name in self.rings[ring].buffers:
            far = fn.let(f"mul i32 {room}, {self.em.places[name][1] // self.stages}")
            base = self.bases[name]
            self.ex.pointers[name] = fn.let(f"getelementptr i8, ptr {base}, i32 {far}", "p")

    # Turns.

    def _block(self) -> tuple[str, str]:
        """The number of this block, and how many there are."""
        numbers = []
        for name in (BLOCK, BLOCKS):
            self.fn.module.declare(name, "i32 ()")
            numbers.append(self.fn.let(f"zext i32 {self.fn.let(f'call i32 @{name}()')} to i64"))
        return numbers[0], numbers[1]

    @contextmanager
    def _turns(self, first: str = "", apart: str = "") -> Iterator[str]:
        """The iterations of the grid loop that a block, or some threads of it, have.

        Gives how many steps of the walk each has.
        """
        ex, launch = self.ex, self.em.launch
        begin, step = (first, apart) if first else self._block()
        ex.begin_statement()
        with self.fn.count(begin, ex.value(launch.turns), step) as turn:
            ex.values[launch.number] = turn
            extent = as_int(launch.turns)
            ex.ranges[launch.number] = Interval(0, None if extent is None else extent - 1)
            ex.begin_statement()
            yield ex.value(self.walk.extent)

    def _bind(self, step: str) -> None:
        self.em.bind(self.walk, step)

    # What is copied.

    def _count(self) -> str:
        """A number that a thread counts up: of steps, or turns, of all turns so far."""
        place = self.fn.at_entry("alloca i32, align 4", "a")
        self.fn.emit(f"store i32 0, ptr {place}, align 4")
        return place

    def _value(self, count: str) -> str:
        return self.fn.let(f"load i32, ptr {count}, align 4")

    def _next(self, count: str) -> str:
        following = self.fn.let(f"add i32 {self._value(count)}, 1")
        self.fn.emit(f"store i32 {following}, ptr {count}, align 4")
        return following

    @contextmanager
    def _if(self, condition: str) -> Iterator[None]:
        fn = self.fn
        yes, no = fn.label("then"), fn.label("end")
        fn.emit(f"br i1 {fn.let(condition)}, label %{yes}, label %{no}")
        fn.start(yes)
        with fn.scope():
            yield
        fn.emit(f"br label %{no}")
        fn.start(no)

    def _copy(self, ring: int, k: str, step: str) -> None:
        """Have the tiles of a step copied as soon as there is room."""
        place = Region(MBARRIERS, ((const(0), const(1)),))
        with self.fn.scope():
            self._await(ring, True, step)
            self._bind(k)
            self._room(ring, step)
            base = self.ex.pointers[MBARRIERS]
            self.ex.pointers[MBARRIERS] = self._place(self._index(ring, False, step))
            for s in self.rings[ring].copies:
                self.em.emit(replace(s, srcs=(*s.srcs, place)))
            self.ex.pointers[MBARRIERS] = base

    # What is computed.

    def _all(self, stmts: Iterable[Stmt]) -> None:
        for s in stmts:
            with self.fn.scope():
                self.em.emit(s)

    def _settle(self, product: Stmt, left: int = 0) -> None:
        """Wait for the sums of a product, not for so many begun after it."""
        tile = products(product)[0]
        name = INTRINSICS[tile.intrinsic].settle + (f"_{left}" if left else "")
        assert isinstance(product, For)
        waits = replace(product, body=Tile("copy", tile.dst, (tile.dst,), name))
        with self.fn.scope():
            self.em.emit(waits)

    def _asm(self, text: str, constraints: str = "", given: str = "") -> None:
        known = f"{constraints}," if constraints else ""
        self.fn.emit(f'call void asm sideeffect "{text}", "{known}~{{memory}}"({given})')
        self.ex.loads.forget()
