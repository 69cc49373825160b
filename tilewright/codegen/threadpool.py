"""The fork-join thread pool of a compiled model, written as LLVM IR.

In: a target triple. Out: the text of a module that defines

    void tw_parallel(ptr body, ptr ctx, i64 n)    body is void(ptr ctx, i64 begin, i64 end)
    void tw_set_threads(i32)    i32 tw_get_threads()    void tw_shutdown()

and needs libc and pthread only, so that an exported library stands alone.

`tw_parallel` cuts [0, n) into one contiguous chunk a thread, runs the first chunk itself and
returns when all are done. It runs everything inline when that is all it can do: one thread, one
iteration, or a pool that is already working (a nested call, or another thread's).

Each worker owns a mailbox of two cache lines. The caller writes a chunk and a sequence number
into the first, the worker answers with that number in the second: one line travels each way and
no counter is shared. A worker polls its mailbox for some tens of microseconds, then sleeps on it.

The state lives in pages that the kernel zeroes in a forked child (MADV_WIPEONFORK), where the
workers do not exist: the child finds a pool not yet started and starts its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from tilewright.codegen.threadpool_workers import MAILBOX, WORKER, WORKERS
from tilewright.core.errors import UnsupportedError

MAX_THREADS = 256


@dataclass(frozen=True)
class _Arch:
    """What differs between processors: the polling hint, its price and the futex's number."""

    futex: int
    pause: str
    declare: str
    spins: int  # polls of a mailbox that take 50 to 100 microseconds


_ARCHS = {
    # `yield` does nothing on most cores; `isb` stalls for some ten nanoseconds, as `pause` does.
    "aarch64": _Arch(
        futex=98,
        pause="call void @llvm.aarch64.isb(i32 15)",
        declare="declare void @llvm.aarch64.isb(i32)",
        spins=5000,
    ),
    "x86_64": _Arch(
        futex=202,
        pause="call void @llvm.x86.sse2.pause()",
        declare="declare void @llvm.x86.sse2.pause()",
        spins=3000,
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
        workers=MAX_THREADS - 1,
        max_threads=MAX_THREADS,
        # the header line, then one mailbox a worker
        size=128 * MAX_THREADS,
        futex=arch.futex,
        pause=arch.pause,
        declare=arch.declare,
        spins=arch.spins,
        patience=arch.spins // 8,
    )


_TYPES = """
; A worker's mailbox. The first cache line is the caller's (the job), the second the worker's.
%tw.slot = type {
  i32,          ; 0 posted: the sequence number of the last job; the futex
  i32,          ; 1 asleep: 1 while the worker sleeps or is about to
  ptr, ptr,     ; 2 body, 3 ctx; no body means: end
  i64, i64,     ; 4 begin, 5 end
  i64,          ; 6 the pthread_t
  [16 x i8],
  i32,          ; 8 done: the sequence number of the last job finished
  [60 x i8]
}

%tw.pool = type {
  i32,          ; 0 busy: 1 while a job runs or the workers change
  i32,          ; 1 sequence: the number of the last job
  i32,          ; 2 running: how many workers exist
  [116 x i8],
  [$workers x %tw.slot]  ; 4
}

@tw.pool = internal global ptr null      ; made by the first parallel job
@tw.threads = internal global i32 0      ; 0: as many as there are processors for this process
@tw.owner = internal global i32 0        ; a process, where the kernel cannot wipe on fork; else 0

declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @madvise(ptr, i64, i32)
declare i32 @getpid()
declare i32 @sched_yield()
declare i32 @sched_getaffinity(i32, i64, ptr)
declare i64 @syscall(i64, ...)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @llvm.ctpop.i64(i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i32 @llvm.smax.i32(i32, i32)
declare i32 @llvm.smin.i32(i32, i32)
$declare
"""

_STATE = """
; The pool's memory, or null if there is none to be had.
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

_PARALLEL = """
define void @tw_parallel(ptr %body, ptr %ctx, i64 %n) {
  %empty = icmp sle i64 %n, 0
  br i1 %empty, label %nothing, label %count
nothing:
  ret void
count:
  %threads = call i32 @tw_get_threads()
  %threads.wide = zext i32 %threads to i64
  %parts = call i64 @llvm.smin.i64(i64 %threads.wide, i64 %n)
  %alone = icmp eq i64 %parts, 1
  br i1 %alone, label %inline, label %find
find:
  %pool = call ptr @tw.get_pool()
  %none = icmp eq ptr %pool, null
  br i1 %none, label %inline, label %take
take:
  %free = call i1 @tw.try_lock(ptr %pool)
  br i1 %free, label %share, label %inline
inline:
  call void %body(ptr %ctx, i64 0, i64 %n)
  ret void
share:
  %helpers = trunc i64 %parts to i32
  %wanted = sub i32 %helpers, 1
  %running = call i32 @tw.start_workers(ptr %pool, i32 %wanted)
  %workers = call i32 @llvm.smin.i32(i32 %running, i32 %wanted)
  call void @tw.fork_join(ptr %pool, i32 %workers, ptr %body, ptr %ctx, i64 %n)
  call void @tw.unlock(ptr %pool)
  ret void
}

; Chunk 0 is the caller's, chunk w + 1 is worker w's; chunk t is [t * n / parts, (t+1) * n / parts).
define internal void @tw.fork_join(ptr %pool, i32 %workers, ptr %body, ptr %ctx, i64 %n) {
  %job = call i32 @tw.next_sequence(ptr %pool)
  %workers.wide = zext i32 %workers to i64
  %parts = add i64 %workers.wide, 1
  %first.end = udiv i64 %n, %parts
  br label %posts
posts:
  %p = phi i32 [ 0, %0 ], [ %p.next, %post ]
  %begin = phi i64 [ %first.end, %0 ], [ %end, %post ]
  %posted = icmp eq i32 %p, %workers
  br i1 %posted, label %wakes, label %post
post:
  %p.next = add i32 %p, 1
  %chunk = zext i32 %p.next to i64
  %chunk.next = add i64 %chunk, 1
  %scaled = mul i64 %chunk.next, %n
  %end = udiv i64 %scaled, %parts
  %p.slot = call ptr @tw.slot_of(ptr %pool, i32 %p)
  call void @tw.post(ptr %p.slot, i32 %job, ptr %body, ptr %ctx, i64 %begin, i64 %end)
  br label %posts
wakes:  ; a loop of its own: those who poll start without waiting for the system calls
  %w = phi i32 [ 0, %posts ], [ %w.next, %wake ]
  %woken = icmp eq i32 %w, %workers
  br i1 %woken, label %mine, label %wake
wake:
  %w.slot = call ptr @tw.slot_of(ptr %pool, i32 %w)
  call void @tw.wake(ptr %w.slot)
  %w.next = add i32 %w, 1
  br label %wakes
mine:
  call void %body(ptr %ctx, i64 0, i64 %first.end)
  br label %joins
joins:
  %j = phi i32 [ 0, %mine ], [ %j.next, %join ]
  %joined = icmp eq i32 %j, %workers
  br i1 %joined, label %done, label %join
join:
  %j.slot = call ptr @tw.slot_of(ptr %pool, i32 %j)
  call void @tw.await(ptr %j.slot, i32 %job)
  %j.next = add i32 %j, 1
  br label %joins
done:
  ret void
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

; Sets the number of threads; 0 means one for each processor. Not to be called from a body.
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

; Ends the workers and gives the pool's memory back. No job may be running; a later one starts
; the pool anew.
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

_MODULE = Template(_TYPES + _STATE + MAILBOX + WORKER + WORKERS + _PARALLEL + _CONTROL)
