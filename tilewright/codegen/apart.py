"""Blocks of threads of which some only copy, and the others have two products under way at a time.

    for k in serial(n) {apart=2} {          one thread apart:
      copy step k to K, V                     copy to K and V, as soon as their room is free
      S = A * K                             the others:
      formulas of S                  →        S = A * K, formulas of step 0
      O += W * V                              for k in serial(n - 1) {
    }                                           begin S = A * K of step k + 1
                                                begin O += W * V of step k
                                                wait for S; formulas of step k + 1
                                                wait for O; what touches O and W
                                              }
                                              O += W * V of the last step

So formulas run beside a product. Blocks are as many as run at once, and each goes through several
iterations of the grid loop: while results are written, the next operands are copied. Places in
shared memory count, for each buffer and step, the copies that have come and the warps that are done
with it; their numbers go on from turn to turn.

Threads that copy need few registers, and give theirs to the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import as_int, const
from tilewright.codegen.combine import WARP, barrier
from tilewright.codegen.walk_parts import products, walk_parts
from tilewright.finalize.gpu.apart import COUNTER
from tilewright.ir.loop.nodes import Alloc, For, Region, Stmt, Tile
from tilewright.ir.loop.threads import APART, THREAD
from tilewright.ir.loop.walk import rewrite_stmts, seq, statements
from tilewright.schedule.intrin.bulk import FENCE, INIT
from tilewright.schedule.intrin.table import INTRINSICS
from tilewright.schedule.intrin.wgmma import begun_name

if TYPE_CHECKING:
    from tilewright.codegen.nvptx import LaunchEmitter

# The number of blocks.
BLOCKS = "llvm.nvvm.read.ptx.sreg.nctaid.x"
BLOCK = "llvm.nvvm.read.ptx.sreg.ctaid.x"
# Threads that multiply at once, the registers of a multiprocessor, and those that a thread keeps
# which only copies; registers come in eights.
GROUP, REGISTERS, FEW, UNIT = 128, 65536, 24, 8
# One thread of a warp says that it is done.
LEAVE = (
    "{\\0A.reg .pred p;\\0Asetp.eq.u32 p, $1, 0;\\0A"
    "@p mbarrier.arrive.shared::cta.b64 _, [$0];\\0A}"
)


class Apart:
    """Emits a launch whose blocks have such a loop."""

    def __init__(self, emitter: LaunchEmitter) -> None:
        self.em = emitter
        self.fn = emitter.fn
        self.ex = emitter.expressions
        self.parts = walk_parts(emitter.launch.body)
        self.walk = self.parts.walk
        self.stages = int(dict(self.walk.annotations)[APART])
        self.groups = emitter.launch.threads // GROUP

    def emit(self) -> None:
        """The whole kernel."""
        for _, s in statements(self.em.launch.body):
            if isinstance(s, Alloc):
                self.em.allocate(s.buffer)
        self.bases = {name: self.ex.pointers[name] for name in self.parts.rings}
        self._start_counters()
        fn, threads = self.fn, self.em.launch.threads
        work, copy, end = fn.label("work"), fn.label("copy"), fn.label("end")
        number = self.ex.values[THREAD]
        main = fn.let(f"icmp ult i64 {number}, {threads}")
        fn.emit(f"br i1 {main}, label %{work}, label %{copy}")
        fn.start(copy)
        self._asm(f"setmaxnreg.dec.sync.aligned.u32 {FEW};")
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
        each = REGISTERS // (GROUP * (self.groups + 1)) // UNIT * UNIT
        return (each * (self.groups + 1) - FEW) // self.groups // UNIT * UNIT

    def _start_counters(self) -> None:
        fn = self.fn
        fn.module.declare(INIT, "void (ptr addrspace(3), i32)")
        yes, done = fn.label("init"), fn.label("ready")
        first = fn.let(f"icmp eq i64 {self.ex.values[THREAD]}, 0")
        fn.emit(f"br i1 {first}, label %{yes}, label %{done}")
        fn.start(yes)
        warps = self.em.launch.threads // WARP
        for ring, copies in enumerate(self.parts.copies):
            for free, count in enumerate((len(copies), warps)):
                for stage in range(self.stages):
                    place = self._near(str((2 * ring + free) * self.stages + stage))
                    fn.emit(f"call void @{INIT}(ptr addrspace(3) {place}, i32 {count})")
        fn.emit(FENCE)
        fn.emit(f"br label %{done}")
        fn.start(done)
        barrier(self.ex)

    # Places that count: of each ring, whether a step is there, and whether its room is free.

    def _place(self, index: str) -> str:
        base = self.ex.pointers[COUNTER]
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

    def _leave(self, ring: int, step: str) -> None:
        """A warp does not need the room of a step any more."""
        fn = self.fn
        lane = fn.let(f"and i64 {self.ex.values[THREAD]}, {WARP - 1}")
        narrow = fn.let(f"trunc i64 {lane} to i32")
        near = self._near(self._index(ring, True, step))
        self._asm(LEAVE, "l,r", f"ptr addrspace(3) {near}, i32 {narrow}")

    def _room(self, ring: int, step: str) -> None:
        """Let a buffer be the room of a step."""
        name, fn = self.parts.rings[ring], self.fn
        size = self.em.places[name][1] // self.stages
        room = fn.let(f"urem i32 {step}, {self.stages}")
        far = fn.let(f"mul i32 {room}, {size}")
        base = self.bases[name]
        self.ex.pointers[name] = fn.let(f"getelementptr i8, ptr {base}, i32 {far}", "p")

    # Turns.

    @contextmanager
    def _turns(self) -> Iterator[str]:
        """The iterations of the grid loop that a block has; how many steps of the walk each has."""
        fn, ex, launch = self.fn, self.ex, self.em.launch
        numbers = []
        for name in (BLOCK, BLOCKS):
            fn.module.declare(name, "i32 ()")
            numbers.append(fn.let(f"zext i32 {fn.let(f'call i32 @{name}()')} to i64"))
        ex.begin_statement()
        with self.fn.count(numbers[0], ex.value(launch.turns), numbers[1]) as turn:
            ex.values[launch.number] = turn
            extent = as_int(launch.turns)
            ex.ranges[launch.number] = Interval(0, None if extent is None else extent - 1)
            ex.begin_statement()
            yield ex.value(self.walk.extent)

    def _bind(self, step: str) -> None:
        self.em.bind(self.walk, step)

    # What is copied.

    def _copy_all(self) -> None:
        """All steps of all turns, the first operand one step before the second."""
        self.em.in_thread = True
        turns, steps = self._count(), self._count()
        with self._turns() as count:
            for ring in range(2, len(self.parts.rings)):
                self._copy(ring, "0", self._value(turns))
            self._copy(0, "0", self._value(steps))
            with self.fn.count("0", count) as k:
                now, following = self._value(steps), self._next(steps)
                after = self.fn.let(f"add i64 {k}, 1")
                with self._if(f"icmp slt i64 {after}, {count}"):
                    self._copy(0, after, following)
                self._copy(1, k, now)
            self._next(turns)
        self.ex.pointers.update(self.bases)
        self.em.in_thread = False

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
        place = Region(COUNTER, ((const(0), const(1)),))
        with self.fn.scope():
            self._await(ring, True, step)
            self._bind(k)
            self._room(ring, step)
            base = self.ex.pointers[COUNTER]
            self.ex.pointers[COUNTER] = self._place(self._index(ring, False, step))
            for s in self.parts.copies[ring]:
                self.em.emit(replace(s, srcs=(*s.srcs, place)))
            self.ex.pointers[COUNTER] = base

    # What is computed.

    def _work(self) -> None:
        parts = self.parts
        lasting = range(2, len(self.parts.rings))
        turns, steps = self._count(), self._count()
        with self._turns() as count:
            self._all(parts.before)
            now, turn = self._value(steps), self._value(turns)
            self._bind("0")
            for ring in lasting:
                self._await(ring, False, turn)
                self._room(ring, turn)
            self._await(0, False, now)
            self._begin(0, now)
            self._settle(parts.first)
            self._leave(0, now)
            self._all((*parts.beside, *parts.late))
            last = self.fn.let(f"add i64 {count}, -1")
            with self.fn.count("0", last) as k:
                self._step(k, self._value(steps), self._next(steps))
            for ring in lasting:
                self._leave(ring, turn)
            now = self._value(steps)
            self._bind(last)
            self._await(1, False, now)
            self._begin(1, now)
            self._settle(parts.second)
            self._leave(1, now)
            self._next(steps)
            self._next(turns)
            self._all(parts.after)

    def _step(self, k: str, now: str, following: str) -> None:
        """The first product of the next step, the second of this one, formulas beside it."""
        parts = self.parts
        after = self.fn.let(f"add i64 {k}, 1")
        self._await(0, False, following)
        self._await(1, False, now)
        self._bind(after)
        self._begin(0, following)
        self._bind(k)
        self._begin(1, now)
        self._bind(after)
        self._settle(parts.first, left=len(products(parts.second)))
        self._leave(0, following)
        self._all(parts.beside)
        self._settle(parts.second)
        self._leave(1, now)
        self._all(parts.late)

    def _all(self, stmts: Iterable[Stmt]) -> None:
        for s in stmts:
            with self.fn.scope():
                self.em.emit(s)

    def _begin(self, ring: int, step: str) -> None:
        """A product, under way from here on."""
        product = (self.parts.first, self.parts.second)[ring]
        starts = any(isinstance(t, Tile) and not t.srcs for _, t in statements(product))
        tiles = products(product)

        def begun(s: Stmt) -> Stmt | None:
            if not isinstance(s, Tile):
                return None
            if not s.srcs:
                return seq()
            return replace(s, intrinsic=begun_name(s.intrinsic, starts and s is tiles[0]))

        with self.fn.scope():
            self._room(ring, step)
            self.em.emit(rewrite_stmts(product, begun))

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
