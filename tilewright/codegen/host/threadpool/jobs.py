"""The jobs of the thread pool as LLVM IR: offering chunks, claiming them, waiting for them.

The types `%tw.pool` and `%tw.slot`, the declarations and the `$names` of the template are in
`pool.py`, which concatenates the parts.
"""

from __future__ import annotations

OFFERS = """
define internal ptr @tw.slot_of(ptr %pool, i32 %index) alwaysinline {
  %wide = zext i32 %index to i64
  %slot = getelementptr %tw.pool, ptr %pool, i64 0, i32 6, i64 %wide
  ret ptr %slot
}

; Offers the chunks from %first to %last of a job in a slot.
define internal void @tw.offer(ptr %slot, i32 %job, i32 %parts, ptr %body, ptr %ctx, i64 %n,
                               i32 %chunks, i32 %first, i32 %last) {
  %body.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 1
  store ptr %body, ptr %body.at
  %ctx.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 2
  store ptr %ctx, ptr %ctx.at
  %n.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 3
  store i64 %n, ptr %n.at
  %chunks.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 4
  store i32 %chunks, ptr %chunks.at
  %last.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 5
  store i32 %last, ptr %last.at
  %parts.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 6
  store atomic i32 %parts, ptr %parts.at monotonic, align 4
  %left = sub i32 %last, %first
  call void @tw.publish(ptr %slot, i32 %job, i32 %left)
  ret void
}

define internal void @tw.publish(ptr %slot, i32 %job, i32 %left) alwaysinline {
  %job.wide = zext i32 %job to i64
  %high = shl i64 %job.wide, 32
  %low = zext i32 %left to i64
  %offer = or i64 %high, %low
  store atomic i64 %offer, ptr %slot seq_cst, align 8
  ret void
}

; Wakes the slot's worker if it sleeps: FUTEX_WAKE | FUTEX_PRIVATE.
define internal void @tw.wake(ptr %slot) {
  %asleep.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 9
  %asleep = load atomic i32, ptr %asleep.at seq_cst, align 4
  %yes = icmp ne i32 %asleep, 0
  br i1 %yes, label %wake, label %done
wake:
  %futex = getelementptr i8, ptr %slot, i64 4
  call i64 (i64, ...) @syscall(i64 $futex, ptr %futex, i64 129, i64 1)
  br label %done
done:
  ret void
}

; Runs chunks of %job until none is left: first those of slot %me, then those of the others.
; Returns how many it ran. Only a claim guarantees that the job is still running; what is read
; before it may belong to a later job, whose number differs.
define internal i64 @tw.take_part(ptr %pool, i32 %me, i32 %job, i32 %parts) {
entry:
  br label %visit
visit:
  %v = phi i32 [ 0, %entry ], [ %v.next, %exhausted ]
  %before = phi i64 [ 0, %entry ], [ %done, %exhausted ]
  %all = icmp uge i32 %v, %parts
  br i1 %all, label %leave, label %choose
choose:
  %sum = add i32 %me, %v
  %wraps = icmp uge i32 %sum, %parts
  %wrapped = sub i32 %sum, %parts
  %index = select i1 %wraps, i32 %wrapped, i32 %sum
  %slot = call ptr @tw.slot_of(ptr %pool, i32 %index)
  br label %look
look:
  %done = phi i64 [ %before, %choose ], [ %done, %claim ], [ %done.next, %run ]
  %offer = load atomic i64, ptr %slot acquire, align 8
  %high = lshr i64 %offer, 32
  %its.job = trunc i64 %high to i32
  %left = trunc i64 %offer to i32
  %same = icmp eq i32 %its.job, %job
  %some = icmp ne i32 %left, 0
  %open = and i1 %same, %some
  br i1 %open, label %claim, label %exhausted
claim:
  %less = sub i64 %offer, 1
  %pair = cmpxchg ptr %slot, i64 %offer, i64 %less acq_rel monotonic, align 8
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %run, label %look
run:
  call void @tw.run_chunk(ptr %slot, i32 %left)
  %done.next = add i64 %done, 1
  br label %look
exhausted:
  %v.next = add i32 %v, 1
  br label %visit
leave:
  ret i64 %before
}

; Chunk c of a job is [c * n / chunks, (c + 1) * n / chunks).
define internal void @tw.run_chunk(ptr %slot, i32 %left) alwaysinline {
  %body.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 1
  %body = load ptr, ptr %body.at
  %ctx.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 2
  %ctx = load ptr, ptr %ctx.at
  %n.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 3
  %n = load i64, ptr %n.at
  %chunks.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 4
  %chunks.narrow = load i32, ptr %chunks.at
  %chunks = zext i32 %chunks.narrow to i64
  %last.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 5
  %last = load i32, ptr %last.at
  %chunk.narrow = sub i32 %last, %left
  %chunk = zext i32 %chunk.narrow to i64
  %scaled = mul i64 %chunk, %n
  %begin = udiv i64 %scaled, %chunks
  %scaled.next = add i64 %scaled, %n
  %end = udiv i64 %scaled.next, %chunks
  call void %body(ptr %ctx, i64 %begin, i64 %end)
  ret void
}
"""

PARALLEL = """
define void @tw_parallel_work(ptr %body, ptr %ctx, i64 %n, i64 %steps) {
  %few = icmp slt i64 %steps, $least_work
  %some = icmp sgt i64 %n, 0
  %alone = and i1 %few, %some
  br i1 %alone, label %inline, label %share
inline:
  call void %body(ptr %ctx, i64 0, i64 %n)
  ret void
share:
  call void @tw_parallel(ptr %body, ptr %ctx, i64 %n)
  ret void
}

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
  %parts.narrow = trunc i64 %parts to i32
  %wanted = sub i32 %parts.narrow, 1
  %running = call i32 @tw.start_workers(ptr %pool, i32 %wanted)
  %workers = call i32 @llvm.smin.i32(i32 %running, i32 %wanted)
  %threads.used = add i32 %workers, 1
  call void @tw.fork_join(ptr %pool, i32 %threads.used, ptr %body, ptr %ctx, i64 %n)
  call void @tw.unlock(ptr %pool)
  ret void
}

; Slot p is offered the chunks [p * chunks / parts, (p + 1) * chunks / parts).
define internal void @tw.fork_join(ptr %pool, i32 %parts, ptr %body, ptr %ctx, i64 %n) {
  %job = call i32 @tw.next_sequence(ptr %pool)
  %most = mul i32 %parts, $chunks
  %most.wide = zext i32 %most to i64
  %chunks = call i64 @llvm.smin.i64(i64 %most.wide, i64 %n)
  %chunks.narrow = trunc i64 %chunks to i32
  %pending = getelementptr %tw.pool, ptr %pool, i64 0, i32 4
  store atomic i64 %chunks, ptr %pending monotonic, align 8
  br label %posts
posts:
  %p = phi i32 [ 0, %0 ], [ %p.next, %post ]
  %first = phi i32 [ 0, %0 ], [ %last, %post ]
  %posted = icmp eq i32 %p, %parts
  br i1 %posted, label %wakes, label %post
post:
  %p.next = add i32 %p, 1
  %scaled = mul i32 %p.next, %chunks.narrow
  %last = udiv i32 %scaled, %parts
  %p.slot = call ptr @tw.slot_of(ptr %pool, i32 %p)
  call void @tw.offer(ptr %p.slot, i32 %job, i32 %parts, ptr %body, ptr %ctx, i64 %n,
                      i32 %chunks.narrow, i32 %first, i32 %last)
  br label %posts
wakes:  ; a separate loop: polling workers start without waiting for the system calls
  %w = phi i32 [ 1, %posts ], [ %w.next, %wake ]
  %woken = icmp eq i32 %w, %parts
  br i1 %woken, label %mine, label %wake
wake:
  %w.slot = call ptr @tw.slot_of(ptr %pool, i32 %w)
  call void @tw.wake(ptr %w.slot)
  %w.next = add i32 %w, 1
  br label %wakes
mine:
  %done = call i64 @tw.take_part(ptr %pool, i32 0, i32 %job, i32 %parts)
  %left = atomicrmw sub ptr %pending, i64 %done acq_rel, align 8
  %last.one = icmp eq i64 %left, %done
  br i1 %last.one, label %over, label %await
await:
  call void @tw.await(ptr %pending)
  br label %over
over:
  ret void
}

; Waits until nothing is pending. Yields its processor when that takes long: there may be fewer
; processors than threads.
define internal void @tw.await(ptr %pending) {
  %spins.set = load atomic i32, ptr @tw.spins monotonic, align 4
  %patience = sdiv i32 %spins.set, 8
  br label %poll
poll:
  %spins = phi i32 [ 0, %0 ], [ %spins.next, %pause ], [ %spins, %yield ]
  %left = load atomic i64, ptr %pending acquire, align 8
  %ready = icmp eq i64 %left, 0
  br i1 %ready, label %leave, label %wait
wait:
  %patient = icmp slt i32 %spins, %patience
  br i1 %patient, label %pause, label %yield
pause:
  $pause
  %spins.next = add i32 %spins, 1
  br label %poll
yield:
  call i32 @sched_yield()
  br label %poll
leave:
  ret void
}
"""
