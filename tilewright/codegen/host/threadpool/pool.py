"""The fork-join thread pool of a compiled model, written as LLVM IR.

In: a target triple. Out: the text of a module that defines

    void tw_parallel(ptr body, ptr ctx, i64 n)    body is void(ptr ctx, i64 begin, i64 end)
    void tw_parallel_work(ptr body, ptr ctx, i64 n, i64 steps)
    void tw_set_threads(i32)    i32 tw_get_threads()    void tw_shutdown()
    void tw_set_spin(i32 microseconds)

and needs libc and pthread only, so that an exported library stands alone.

`tw_parallel` splits [0, n) into chunks, `CHUNKS` for each thread, and returns when all are done. It
runs all iterations inline on one thread, for one iteration, and where the pool is busy (a nested
call, or one from another thread). `tw_parallel_work` also runs inline where the job has fewer
operations than the parallel grain.

Scheduling is work stealing over counters. Each thread, the caller being the first, has a slot with
an offer: the job's number and how many of the slot's chunks are left. A thread claims a chunk by an
atomic decrement of an offer: its own until that is empty, then the others'. So a thread mostly gets
the same iterations in each job (cache affinity), a slow or missing worker leaves its chunks to the
others, and the caller waits only for chunks that were claimed. An offer carries the number of its
job, so that a late thread fails to claim and does not access a job that may be over.

A worker polls its slot for `SPIN` microseconds (`tw_set_spin`), then sleeps on a futex.

The state is in pages that the kernel zeroes in a forked child (MADV_WIPEONFORK): the child has no
workers, finds a pool that is not started, and starts its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from tilewright.codegen.host.clock import CLOCK_IR
from tilewright.codegen.host.threadpool.jobs import OFFERS, PARALLEL
from tilewright.codegen.host.threadpool.workers import WORKER, WORKERS
from tilewright.core.errors import UnsupportedError
from tilewright.schedule.builtin.cpu.parallelize import PARALLEL_WORK

MAX_THREADS = 256
"""Slots of the pool, of two cache lines each; they are part of the module."""
CHUNKS = 4
"""Chunks for each thread, where there are enough iterations."""

SPIN = 50
"""The default of `tw_set_spin`: microseconds that a worker polls before it sleeps."""


@dataclass(frozen=True)
class _Arch:
    """What differs between architectures: the spin hint and the number of the futex system call."""

    futex: int
    pause: str
    declare: str


_ARCHS = {
    # `yield` does nothing on most cores; `isb` stalls for some ten nanoseconds, as `pause` does.
    "aarch64": _Arch(
        futex=98,
        pause="call void @llvm.aarch64.isb(i32 15)",
        declare="declare void @llvm.aarch64.isb(i32)",
    ),
    "x86_64": _Arch(
        futex=202,
        pause="call void @llvm.x86.sse2.pause()",
        declare="declare void @llvm.x86.sse2.pause()",
    ),
}
_ARCH_ALIASES = {"arm64": "aarch64", "amd64": "x86_64"}


def threadpool_ir(triple: str) -> str:
    """The pool's module for `triple`, without `target` lines: the caller adds its own."""
    arch_name, _, system = triple.partition("-")
    arch = _ARCHS.get(_ARCH_ALIASES.get(arch_name, arch_name))
    if arch is None or "linux" not in system:
        raise UnsupportedError(
            "threadpool.target",
            f'there is no thread pool for the target "{triple}"',
            help=f"supported: Linux on {', '.join(sorted(_ARCHS))}",
        )
    return _MODULE.substitute(
        max_threads=MAX_THREADS,
        # the header, then one slot a thread
        size=128 * (1 + MAX_THREADS),
        clock=CLOCK_IR.replace("define i64 @tw_now", "define internal i64 @tw.now"),
        chunks=CHUNKS,
        least_work=PARALLEL_WORK,
        spin=SPIN,
        futex=arch.futex,
        pause=arch.pause,
        declare=arch.declare,
    )


_TYPES = """
; The slot of a thread; slot 0 is the caller's. Other threads read the first cache line only.
%tw.slot = type {
  i64,          ; 0 offer: the job's number (the upper half, also the futex), the chunks left
  ptr, ptr,     ; 1 body, 2 ctx
  i64,          ; 3 n, the iterations of the job
  i32, i32,     ; 4 chunks of the job, 5 the one after the last of this slot
  i32,          ; 6 parts: how many slots have chunks of this job
  i32,          ; 7 the slot's own number
  [16 x i8],
  i32,          ; 9 asleep: 1 while the worker sleeps or is about to
  i32,          ; 10 the number of the last job before the worker began
  i64,          ; 11 the pthread_t
  i32,          ; 12 ending: 1 when the worker is to end
  [44 x i8]
}

%tw.pool = type {
  i32,          ; 0 busy: 1 while a job runs or the workers change
  i32,          ; 1 sequence: the number of the last job
  i32,          ; 2 running: how many workers exist
  [52 x i8],
  i64,          ; 4 pending: the chunks not yet done
  [56 x i8],
  [$max_threads x %tw.slot]  ; 6
}

@tw.spins = internal global i32 -1       ; polls before a worker sleeps; -1: not yet known
@tw.pool = internal global ptr null      ; made by the first parallel job
@tw.threads = internal global i32 0      ; 0: as many as there are processors for this process
@tw.owner = internal global i32 0        ; a process, where the kernel cannot wipe on fork; else 0

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare i32 @getpid()
$clock
declare i32 @sched_yield()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
$declare
"""

_STATE = """
; The pool's memory, or null if it cannot be allocated.
define internal ptr @tw.get_pool() {
  %pool = load atomic ptr, ptr @tw.pool acquire, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %make, label %check
make:
  %new = call ptr @tw.make_pool()
  ret ptr %new
check:
  %owner = load i32, ptr @tw.owner
  %wiped = icmp eq i32 %owner, 0
  br i1 %wiped, label %give, label %compare
compare:  ; a kernel without MADV_WIPEONFORK: a child is known by its process number
  %self = call i32 @getpid()
  %same = icmp eq i32 %self, %owner
  br i1 %same, label %give, label %forked
forked:
  call void @llvm.memset.p0.i64(ptr %pool, i8 0, i64 $size, i1 false)
  store i32 %self, ptr @tw.owner
  br label %give
give:
  ret ptr %pool
}

define internal ptr @tw.make_pool() {
  %new = call ptr @mmap(ptr null, i64 $size, i32 3, i32 34, i32 -1, i64 0)  ; private, anonymous
  %failed = icmp eq ptr %new, inttoptr (i64 -1 to ptr)
  br i1 %failed, label %fail, label %wipe
fail:
  ret ptr null
wipe:
  %status = call i32 @madvise(ptr %new, i64 $size, i32 18)  ; MADV_WIPEONFORK
  %ok = icmp eq i32 %status, 0
  br i1 %ok, label %publish, label %remember
remember:
  %self = call i32 @getpid()
  store i32 %self, ptr @tw.owner
  br label %publish
publish:  ; another thread may have been quicker
  %pair = cmpxchg ptr @tw.pool, ptr null, ptr %new acq_rel acquire, align 8
  %first = extractvalue { ptr, i1 } %pair, 1
  br i1 %first, label %mine, label %theirs
mine:
  ret ptr %new
theirs:
  call i32 @munmap(ptr %new, i64 $size)
  %other = extractvalue { ptr, i1 } %pair, 0
  ret ptr %other
}

define internal i1 @tw.try_lock(ptr %pool) {
  %pair = cmpxchg ptr %pool, i32 0, i32 1 acquire monotonic, align 4
  %got = extractvalue { i32, i1 } %pair, 1
  ret i1 %got
}

define internal void @tw.lock(ptr %pool) {
  br label %try
try:
  %got = call i1 @tw.try_lock(ptr %pool)
  br i1 %got, label %done, label %wait
wait:
  call i32 @sched_yield()
  br label %try
done:
  ret void
}

define internal void @tw.unlock(ptr %pool) {
  store atomic i32 0, ptr %pool release, align 4
  ret void
}
"""

_SPIN = """
; Idle workers poll for %microseconds before they sleep; sleeping workers are not woken.
define void @tw_set_spin(i32 %microseconds) {
  %some = call i32 @llvm.smax.i32(i32 %microseconds, i32 0)
  %wide = zext i32 %some to i64
  %time = mul i64 %wide, 1000
  %cost = call i64 @tw.time_polls()
  %scaled = mul i64 %time, 64
  %polls = udiv i64 %scaled, %cost
  %bounded = call i64 @llvm.umin.i64(i64 %polls, i64 1000000000)
  %spins = trunc i64 %bounded to i32
  store atomic i32 %spins, ptr @tw.spins monotonic, align 4
  ret void
}

define internal void @tw.need_spins() {
  %spins = load atomic i32, ptr @tw.spins monotonic, align 4
  %known = icmp sge i32 %spins, 0
  br i1 %known, label %done, label %set
set:
  call void @tw_set_spin(i32 $spin)
  br label %done
done:
  ret void
}

; The nanoseconds of 64 polls, at least 1: the time of a pause differs tenfold between cores.
define internal i64 @tw.time_polls() {
  br label %round
round:
  %r = phi i32 [ 0, %0 ], [ %r.next, %measured ]
  %best = phi i64 [ 1000000, %0 ], [ %best.next, %measured ]
  %start = call i64 @tw.now()
  br label %poll
poll:
  %i = phi i32 [ 0, %round ], [ %i.next, %poll ]
  $pause
  %seen = load atomic i32, ptr @tw.spins acquire, align 4
  %i.next = add i32 %i, 1
  %more = icmp ult i32 %i.next, 64
  br i1 %more, label %poll, label %measured
measured:
  %end = call i64 @tw.now()
  %took = sub i64 %end, %start
  %best.next = call i64 @llvm.smin.i64(i64 %best, i64 %took)
  %r.next = add i32 %r, 1
  %again = icmp ult i32 %r.next, 4
  br i1 %again, label %round, label %done
done:
  %cost = call i64 @llvm.smax.i64(i64 %best.next, i64 1)
  ret i64 %cost
}
"""

_CONTROL = """
define i32 @tw_get_threads() {
  %set = load atomic i32, ptr @tw.threads monotonic, align 4
  %known = icmp sgt i32 %set, 0
  br i1 %known, label %give, label %count
give:
  ret i32 %set
count:
  %cpus = call i32 @tw.count_cpus()
  store atomic i32 %cpus, ptr @tw.threads monotonic, align 4
  ret i32 %cpus
}

; The processors this process may run on, between 1 and $max_threads.
define internal i32 @tw.count_cpus() {
  %mask = alloca [16 x i64]
  call void @llvm.memset.p0.i64(ptr %mask, i8 0, i64 128, i1 false)
  call i32 @sched_getaffinity(i32 0, i64 128, ptr %mask)
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  %sum = phi i64 [ 0, %0 ], [ %sum.next, %next ]
  %word.at = getelementptr i64, ptr %mask, i64 %i
  %word = load i64, ptr %word.at
  %bits = call i64 @llvm.ctpop.i64(i64 %word)
  %sum.next = add i64 %sum, %bits
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, 16
  br i1 %more, label %next, label %done
done:
  %count = trunc i64 %sum.next to i32
  %clamped = call i32 @tw.clamp(i32 %count)
  ret i32 %clamped
}

define internal i32 @tw.clamp(i32 %threads) {
  %low = call i32 @llvm.smax.i32(i32 %threads, i32 1)
  %high = call i32 @llvm.smin.i32(i32 %low, i32 $max_threads)
  ret i32 %high
}

; Sets the number of threads; 0 means one for each processor. Must not be called from a body.
define void @tw_set_threads(i32 %threads) {
  %clamped = call i32 @tw.clamp(i32 %threads)
  %default = icmp sle i32 %threads, 0
  %value = select i1 %default, i32 0, i32 %clamped
  %pool = load atomic ptr, ptr @tw.pool acquire, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %unshared, label %shared
unshared:
  store atomic i32 %value, ptr @tw.threads monotonic, align 4
  ret void
shared:
  %own = call ptr @tw.get_pool()
  call void @tw.lock(ptr %own)
  call void @tw.end_workers(ptr %own)
  store atomic i32 %value, ptr @tw.threads monotonic, align 4
  call void @tw.unlock(ptr %own)
  ret void
}

; Ends the workers and unmaps the pool. No job may be running; a later one starts the pool again.
define void @tw_shutdown() {
  %pool = load atomic ptr, ptr @tw.pool acquire, align 8
  %none = icmp eq ptr %pool, null
  br i1 %none, label %done, label %end
end:
  %own = call ptr @tw.get_pool()
  call void @tw.lock(ptr %own)
  call void @tw.end_workers(ptr %own)
  store atomic ptr null, ptr @tw.pool release, align 8
  call i32 @munmap(ptr %own, i64 $size)
  br label %done
done:
  ret void
}
"""

_MODULE = Template(_TYPES + _STATE + OFFERS + WORKER + WORKERS + PARALLEL + _SPIN + _CONTROL)
