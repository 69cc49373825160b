"""How threads and blocks wait for each other: barriers, mbarriers, flags; registers of roles."""

from __future__ import annotations

from tilewright.codegen.llvm.emitter import ValueEmitter
from tilewright.ir.loop.thread_mapping import WARP_SIZE
from tilewright.schedule.intrin.nvidia.tma import MBARRIER_FENCE, MBARRIER_INIT

# The address space of shared memory.
SHARED_SPACE = 3
BARRIER = "llvm.nvvm.barrier.cta.sync.aligned.all"
# Spins until the phase of a parity is complete.
MBARRIER_TRY_WAIT = (
    "{\\0A.reg .pred p;\\0AWAIT:\\0A"
    "mbarrier.try_wait.parity.shared::cta.b64 p, [$0], $1;\\0A"
    "@p bra DONE;\\0Abra WAIT;\\0ADONE:\\0A}"
)
# The first lane of a warp arrives at an mbarrier.
MBARRIER_ARRIVE = (
    "{\\0A.reg .pred p;\\0Asetp.eq.u32 p, $1, 0;\\0A"
    "@p mbarrier.arrive.shared::cta.b64 _, [$0];\\0A}"
)
# Publishes what the threads of a warp have stored: the first lane adds to the flag.
_SIGNAL = (
    "{\\0A.reg .pred p;\\0Abar.warp.sync 0xffffffff;\\0Asetp.eq.u32 p, $1, 0;\\0A"
    "@p red.release.gpu.global.add.u32 [$0], 1;\\0A}"
)
# Spins until a flag is large enough.
_AWAIT = (
    "{\\0A.reg .pred p;\\0A.reg .u32 v;\\0AWAIT:\\0A"
    "ld.acquire.gpu.global.u32 v, [$0];\\0Asetp.lt.u32 p, v, $1;\\0A@p bra WAIT;\\0A}"
)
SIGNAL, AWAIT = "tw.flag.signal", "tw.flag.await"
TEXTS = {
    SIGNAL: f"""
define internal void @{SIGNAL}(ptr %flag, i32 %lane) alwaysinline {{
  %place = addrspacecast ptr %flag to ptr addrspace(1)
  call void asm sideeffect "{_SIGNAL}", "l,r,~{{memory}}"(ptr addrspace(1) %place, i32 %lane)
  ret void
}}
""",
    AWAIT: f"""
define internal void @{AWAIT}(ptr %flag, i32 %count) alwaysinline {{
  %place = addrspacecast ptr %flag to ptr addrspace(1)
  call void asm sideeffect "{_AWAIT}", "l,r,~{{memory}}"(ptr addrspace(1) %place, i32 %count)
  ret void
}}
""",
}


def barrier(ex: ValueEmitter) -> None:
    """Emit `barrier.sync` for all threads of a block."""
    ex.fn.module.declare(BARRIER, "void (i32)")
    ex.fn.emit(f"call void @{BARRIER}(i32 0)")
    ex.loads.forget()


def mbarrier_init(ex: ValueEmitter, mbarriers: str, number: int, count: int) -> None:
    """Start so many mbarriers, from an address on, and publish them."""
    ex.fn.module.declare(MBARRIER_INIT, f"void (ptr addrspace({SHARED_SPACE}), i32)")
    for n in range(number):
        one = ex.fn.let(f"getelementptr i64, ptr {mbarriers}, i32 {n}", "p")
        ex.fn.emit(f"call void @{MBARRIER_INIT}({_shared(ex, one)}, i32 {count})")
    ex.fn.emit(MBARRIER_FENCE)


def mbarrier_wait(ex: ValueEmitter, mbarrier: str, parity: str) -> None:
    """Wait until the phase of a parity is complete."""
    given = f"{_shared(ex, mbarrier)}, i32 {parity}"
    ex.fn.emit(f'call void asm sideeffect "{MBARRIER_TRY_WAIT}", "l,r,~{{memory}}"({given})')
    ex.loads.forget()


def mbarrier_arrive(ex: ValueEmitter, mbarrier: str, thread: str, where: str) -> None:
    """Each warp arrives, where a condition holds."""
    lane = _lane(ex, thread)
    who = ex.fn.let(f"select i1 {where}, i32 {lane}, i32 {WARP_SIZE}")
    given = f"{_shared(ex, mbarrier)}, i32 {who}"
    ex.fn.emit(f'call void asm sideeffect "{MBARRIER_ARRIVE}", "l,r,~{{memory}}"({given})')
    ex.loads.forget()


def signal_flag(ex: ValueEmitter, flag: str, thread: str) -> None:
    """Each warp adds one to a flag, after all that its threads have stored."""
    ex.fn.module.include(SIGNAL, TEXTS[SIGNAL])
    ex.fn.emit(f"call void @{SIGNAL}(ptr {flag}, i32 {_lane(ex, thread)})")
    ex.loads.forget()


def await_flag(ex: ValueEmitter, flag: str, count: str) -> None:
    """Wait until a flag is at least `count`."""
    ex.fn.module.include(AWAIT, TEXTS[AWAIT])
    ex.fn.emit(f"call void @{AWAIT}(ptr {flag}, i32 {count})")
    ex.loads.forget()


def set_max_registers(ex: ValueEmitter, registers: int, grow: bool) -> None:
    """Change how many registers each thread of a warpgroup has."""
    how = "inc" if grow else "dec"
    text = f"setmaxnreg.{how}.sync.aligned.u32 {registers};"
    ex.fn.emit(f'call void asm sideeffect "{text}", "~{{memory}}"()')


def _shared(ex: ValueEmitter, mbarrier: str) -> str:
    """The address of an mbarrier in shared memory."""
    near = ex.fn.let(f"addrspacecast ptr {mbarrier} to ptr addrspace({SHARED_SPACE})", "n")
    return f"ptr addrspace({SHARED_SPACE}) {near}"


def _lane(ex: ValueEmitter, thread: str) -> str:
    """The lane of a thread."""
    lane = ex.fn.let(f"and i64 {thread}, {WARP_SIZE - 1}")
    return ex.fn.let(f"trunc i64 {lane} to i32")
