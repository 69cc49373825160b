"""Warp-specialized kernels: a producer thread issues TMA copies, consumer warps compute.

    for b in grid(320) {persistent=132} {     132 blocks, each for b, b + 132, ...:
      for k in serial(n)                        producer: wait until the stage is empty,
          {pipeline_stages=2,                     copy k-tile k to it
           warp_specialized=1} {       →        consumers: wait until the stage is full,
        copy k-tile k to K                        S = A * K, release the stage
        S = A * K
      }
    }

The kernel is persistent: while the epilogue of one tile runs, the producer loads the next one. Each
stage of a buffer has two mbarriers. `full` counts the bytes of the TMA copies, `empty` the consumer
warps that have released it. Stages are counted on from tile to tile, and so is the parity.

The producer warpgroup needs few registers and hands its own to the consumers (`setmaxnreg`).
`flash_attention.py`, `pingpong_gemm.py` and `stream_k_gemm.py` have the consumers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

from tilewright.arith.bounds import Interval
from tilewright.arith.expr import as_int, const
from tilewright.codegen.gpu.barriers import barrier
from tilewright.codegen.gpu.block_emitter import BlockEmitter
from tilewright.codegen.gpu.mainloop import PipelineBuffers, products
from tilewright.finalize.gpu.warp_specialize import MBARRIERS
from tilewright.ir.loop.annotations import PIPELINE_STAGES
from tilewright.ir.loop.nodes import Alloc, For, Region, Stmt, Tile
from tilewright.ir.loop.thread_mapping import THREAD, WARP_SIZE
from tilewright.ir.loop.walk import statements_in
from tilewright.schedule.intrin.nvidia.tma import MBARRIER_FENCE, MBARRIER_INIT
from tilewright.schedule.intrin.table import INTRINSICS

BLOCKS = "llvm.nvvm.read.ptx.sreg.nctaid.x"
BLOCK = "llvm.nvvm.read.ptx.sreg.ctaid.x"
# Threads of a warpgroup; registers of an SM, the unit of `setmaxnreg`, and its limit for a thread.
WARPGROUP, REGISTERS, REGISTER_UNIT, MAX_REGISTERS = 128, 65536, 8, 248
# The first lane of a warp arrives at an mbarrier.
MBARRIER_ARRIVE = (
    "{\\0A.reg .pred p;\\0Asetp.eq.u32 p, $1, 0;\\0A"
    "@p mbarrier.arrive.shared::cta.b64 _, [$0];\\0A}"
)


class WarpSpecializedKernel(ABC):
    """Emits a launch with producer and consumer warps.

    A producer thread keeps `producer_registers` registers.
    """

    producer_registers = 24

    def __init__(
        self, emitter: BlockEmitter, k_loop: For, pipelines: Sequence[PipelineBuffers]
    ) -> None:
        self.em = emitter
        self.fn = emitter.fn
        self.ex = emitter.expressions
        self.k_loop = k_loop
        self.pipelines = pipelines
        self.stages = PIPELINE_STAGES.of(k_loop)

    @abstractmethod
    def _producer(self) -> None:
        """Emit the copies, for one thread."""

    @abstractmethod
    def _consumer(self) -> None:
        """Emit what the consumer warps compute."""

    def emit(self) -> None:
        """The whole kernel."""
        for s in statements_in(self.em.launch.body):
            if isinstance(s, Alloc):
                self.em.allocate(s.buffer)
        self.bases = {name: self.ex.pointers[name] for p in self.pipelines for name in p.buffers}
        self._init_mbarriers()
        fn, threads = self.fn, self.em.launch.consumer_threads
        consume, produce, end = fn.label("work"), fn.label("copy"), fn.label("end")
        number = self.ex.values[THREAD]
        main = fn.let(f"icmp ult i64 {number}, {threads}")
        fn.emit(f"br i1 {main}, label %{consume}, label %{produce}")
        fn.start(produce)
        self._asm(f"setmaxnreg.dec.sync.aligned.u32 {self.producer_registers};")
        one = fn.label("one")
        first = fn.let(f"icmp eq i64 {number}, {threads}")
        fn.emit(f"br i1 {first}, label %{one}, label %{end}")
        fn.start(one)
        with fn.scope():
            self._producer()
        fn.emit(f"br label %{end}")
        fn.start(consume)
        self._asm(f"setmaxnreg.inc.sync.aligned.u32 {self._registers()};")
        self.ex.ranges[THREAD] = Interval(0, threads - 1)
        with fn.scope():
            self._consumer()
        fn.emit(f"br label %{end}")
        fn.start(end)

    def _registers(self) -> int:
        """The registers of a consumer thread: all that the producers leave."""
        groups = self.em.launch.consumer_threads // WARPGROUP
        each = REGISTERS // (WARPGROUP * (groups + 1)) // REGISTER_UNIT * REGISTER_UNIT
        left = (each * (groups + 1) - self.producer_registers) // groups
        return min(MAX_REGISTERS, left // REGISTER_UNIT * REGISTER_UNIT)

    def _init_mbarriers(self) -> None:
        fn = self.fn
        fn.module.declare(MBARRIER_INIT, "void (ptr addrspace(3), i32)")
        yes, done = fn.label("init"), fn.label("ready")
        first = fn.let(f"icmp eq i64 {self.ex.values[THREAD]}, 0")
        fn.emit(f"br i1 {first}, label %{yes}, label %{done}")
        fn.start(yes)
        warps = self.em.launch.threads // WARP_SIZE
        for pipeline, buffers in enumerate(self.pipelines):
            for empty, count in enumerate((len(buffers.copies), warps)):
                for stage in range(self.stages):
                    index = (2 * pipeline + empty) * self.stages + stage
                    self._init_mbarrier(str(index), count)
        for extra, count in self._further_mbarriers():
            self._init_mbarrier(extra, count)
        fn.emit(MBARRIER_FENCE)
        fn.emit(f"br label %{done}")
        fn.start(done)
        barrier(self.ex)

    def _init_mbarrier(self, index: str, count: int) -> None:
        mbarrier = self._shared_mbarrier(index)
        self.fn.emit(f"call void @{MBARRIER_INIT}(ptr addrspace(3) {mbarrier}, i32 {count})")

    def _further_mbarriers(self) -> Iterable[tuple[str, int]]:
        """The indices of other mbarriers, with their arrival counts."""
        return ()

    # mbarriers: for each pipeline and stage, one for full and one for empty.

    def _mbarrier(self, index: str) -> str:
        base = self.ex.pointers[MBARRIERS]
        return self.fn.let(f"getelementptr i64, ptr {base}, i32 {index}", "p")

    def _shared_mbarrier(self, index: str) -> str:
        return self.fn.let(f"addrspacecast ptr {self._mbarrier(index)} to ptr addrspace(3)", "n")

    def _index(self, pipeline: int, empty: bool, k_tile: str) -> str:
        stage = self.fn.let(f"urem i32 {k_tile}, {self.stages}")
        return self.fn.let(f"add i32 {stage}, {(2 * pipeline + empty) * self.stages}")

    def _wait_stage(self, pipeline: int, empty: bool, k_tile: str) -> None:
        """Wait until the stage of a k-tile is full, or empty, as all stages are at first."""
        fn = self.fn
        phase = fn.let(f"udiv i32 {k_tile}, {self.stages}")
        phase = fn.let(f"add i32 {phase}, {int(empty)}")
        parity = fn.let(f"and i32 {phase}, 1")
        self.em.mbarrier_wait(f"ptr {self._mbarrier(self._index(pipeline, empty, k_tile))}", parity)

    def _release_stage(self, pipeline: int, k_tile: str, unless: str = "false") -> None:
        """A consumer warp is done with the stage of a k-tile, unless a condition holds."""
        self._arrive(self._index(pipeline, True, k_tile), unless)

    def _arrive(self, index: str, unless: str = "false") -> None:
        """A warp arrives at an mbarrier, unless a condition holds."""
        fn = self.fn
        lane = fn.let(f"and i64 {self.ex.values[THREAD]}, {WARP_SIZE - 1}")
        narrow = fn.let(f"trunc i64 {lane} to i32")
        who = fn.let(f"select i1 {unless}, i32 {WARP_SIZE}, i32 {narrow}")
        mbarrier = self._shared_mbarrier(index)
        self._asm(MBARRIER_ARRIVE, "l,r", f"ptr addrspace(3) {mbarrier}, i32 {who}")

    def _select_stage(self, pipeline: int, k_tile: str) -> None:
        """Let the names of a pipeline's buffers mean the stage of a k-tile."""
        fn = self.fn
        stage = fn.let(f"urem i32 {k_tile}, {self.stages}")
        for name in self.pipelines[pipeline].buffers:
            offset = fn.let(f"mul i32 {stage}, {self.em.shared_offsets[name][1] // self.stages}")
            base = self.bases[name]
            self.ex.pointers[name] = fn.let(f"getelementptr i8, ptr {base}, i32 {offset}", "p")

    # The loop over tiles.

    def _block(self) -> tuple[str, str]:
        """The index of this block, and the number of blocks."""
        numbers = []
        for name in (BLOCK, BLOCKS):
            self.fn.module.declare(name, "i32 ()")
            numbers.append(self.fn.let(f"zext i32 {self.fn.let(f'call i32 @{name}()')} to i64"))
        return numbers[0], numbers[1]

    @contextmanager
    def _tile_loop(self, first: str = "", step: str = "") -> Iterator[str]:
        """The tiles of a block, or of one of its consumer groups; gives the number of k-tiles."""
        ex, launch = self.ex, self.em.launch
        begin, step = (first, step) if first else self._block()
        ex.begin_statement()
        with self.fn.for_range(begin, ex.value(launch.tiles), step) as tile:
            ex.values[launch.block_var] = tile
            extent = as_int(launch.tiles)
            ex.ranges[launch.block_var] = Interval(0, None if extent is None else extent - 1)
            ex.begin_statement()
            yield ex.value(self.k_loop.extent)

    def _bind(self, k: str) -> None:
        self.em.bind(self.k_loop, k)

    def _counter(self) -> str:
        """A counter of a thread: the k-tiles, or tiles, of all tiles so far."""
        place = self.fn.entry_alloca("i32, align 4", "a")
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

    def _copy(self, pipeline: int, k: str, k_tile: str) -> None:
        """Start the TMA copies of a k-tile as soon as its stage is empty."""
        mbarrier = Region(MBARRIERS, ((const(0), const(1)),))
        with self.fn.scope():
            self._wait_stage(pipeline, True, k_tile)
            self._bind(k)
            self._select_stage(pipeline, k_tile)
            base = self.ex.pointers[MBARRIERS]
            self.ex.pointers[MBARRIERS] = self._mbarrier(self._index(pipeline, False, k_tile))
            for s in self.pipelines[pipeline].copies:
                self.em.emit(replace(s, srcs=(*s.srcs, mbarrier)))
            self.ex.pointers[MBARRIERS] = base

    def _all(self, stmts: Iterable[Stmt]) -> None:
        for s in stmts:
            with self.fn.scope():
                self.em.emit(s)

    def _wgmma_wait(self, product: Stmt, pending: int = 0) -> None:
        """Wait for the accumulators of a product; `pending` later ones may be in flight."""
        tile = products(product)[0]
        name = INTRINSICS[tile.intrinsic].wait + (f"_{pending}" if pending else "")
        assert isinstance(product, For)
        waits = replace(product, body=Tile("copy", tile.dst, (tile.dst,), name))
        with self.fn.scope():
            self.em.emit(waits)

    def _asm(self, text: str, constraints: str = "", given: str = "") -> None:
        known = f"{constraints}," if constraints else ""
        self.fn.emit(f'call void asm sideeffect "{text}", "{known}~{{memory}}"({given})')
        self.ex.loads.forget()
