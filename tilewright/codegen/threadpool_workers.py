"""The workers of the thread pool as LLVM IR text: mailboxes, a worker's life, their start and end.

The types `%tw.pool` and `%tw.slot`, the declarations and the `$names` to fill in are those of
`threadpool`, which joins these parts to its own.
"""

from __future__ import annotations

MAILBOX = """
define internal ptr @tw.slot_of(ptr %pool, i32 %worker) alwaysinline {
  %index = zext i32 %worker to i64
  %slot = getelementptr %tw.pool, ptr %pool, i64 0, i32 4, i64 %index
  ret ptr %slot
}

define internal void @tw.post(ptr %slot, i32 %job, ptr %body, ptr %ctx, i64 %begin, i64 %end) {
  %body.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 2
  store ptr %body, ptr %body.at
  %ctx.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 3
  store ptr %ctx, ptr %ctx.at
  %begin.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 4
  store i64 %begin, ptr %begin.at
  %end.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 5
  store i64 %end, ptr %end.at
  store atomic i32 %job, ptr %slot seq_cst, align 4
  ret void
}

; Wakes the worker if it sleeps: FUTEX_WAKE | FUTEX_PRIVATE.
define internal void @tw.wake(ptr %slot) {
  %asleep.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 1
  %asleep = load atomic i32, ptr %asleep.at seq_cst, align 4
  %yes = icmp ne i32 %asleep, 0
  br i1 %yes, label %wake, label %done
wake:
  call i64 (i64, ...) @syscall(i64 $futex, ptr %slot, i64 129, i64 1)
  br label %done
done:
  ret void
}

; Waits until the worker has done %job. Gives its processor away when that takes long: there may
; be fewer processors than threads.
define internal void @tw.await(ptr %slot, i32 %job) {
  %done.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 8
  br label %poll
poll:
  %spins = phi i32 [ 0, %0 ], [ %spins.next, %pause ], [ $patience, %yield ]
  %done = load atomic i32, ptr %done.at acquire, align 4
  %ready = icmp eq i32 %done, %job
  br i1 %ready, label %leave, label %wait
wait:
  %patient = icmp ult i32 %spins, $patience
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

WORKER = """
; Waits for a job newer than %seen and returns its number: polls first, then sleeps.
define internal i32 @tw.next_job(ptr %slot, i32 %seen) {
  %asleep = getelementptr %tw.slot, ptr %slot, i64 0, i32 1
  br label %poll
poll:
  %spins = phi i32 [ 0, %0 ], [ %spins.next, %pause ]
  %polled = load atomic i32, ptr %slot acquire, align 4
  %fresh = icmp ne i32 %polled, %seen
  br i1 %fresh, label %polled.job, label %pause
pause:
  $pause
  %spins.next = add i32 %spins, 1
  %more = icmp ult i32 %spins.next, $spins
  br i1 %more, label %poll, label %announce
polled.job:
  ret i32 %polled
announce:  ; sequentially consistent, as in tw.wake: one of the two sides sees the other's store
  store atomic i32 1, ptr %asleep seq_cst, align 4
  br label %look
look:
  %posted = load atomic i32, ptr %slot seq_cst, align 4
  %woken = icmp ne i32 %posted, %seen
  br i1 %woken, label %awake, label %sleep
sleep:  ; FUTEX_WAIT | FUTEX_PRIVATE: returns at once if the number is no longer %seen
  %expected = zext i32 %seen to i64
  call i64 (i64, ...) @syscall(i64 $futex, ptr %slot, i64 128, i64 %expected, ptr null)
  br label %look
awake:
  store atomic i32 0, ptr %asleep monotonic, align 4
  ret i32 %posted
}

; A worker's life: take a job, do it, report it, until a job without a body comes.
define internal ptr @tw.work(ptr %slot) {
  %done = getelementptr %tw.slot, ptr %slot, i64 0, i32 8
  %body.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 2
  %ctx.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 3
  %begin.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 4
  %end.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 5
  ; not the posted number: a job may have been posted before this thread came to life
  %before = load i32, ptr %done
  br label %next
next:
  %seen = phi i32 [ %before, %0 ], [ %job, %run ]
  %job = call i32 @tw.next_job(ptr %slot, i32 %seen)
  %body = load ptr, ptr %body.at
  %over = icmp eq ptr %body, null
  br i1 %over, label %leave, label %run
run:
  %ctx = load ptr, ptr %ctx.at
  %begin = load i64, ptr %begin.at
  %end = load i64, ptr %end.at
  call void %body(ptr %ctx, i64 %begin, i64 %end)
  store atomic i32 %job, ptr %done release, align 4
  br label %next
leave:
  store atomic i32 %job, ptr %done release, align 4
  ret ptr null
}
"""

WORKERS = """
; Starts workers until %wanted run. Where the system gives fewer, the pool makes do with those.
define internal i32 @tw.start_workers(ptr %pool, i32 %wanted) {
  %running.at = getelementptr %tw.pool, ptr %pool, i64 0, i32 2
  br label %next
next:
  %running = load i32, ptr %running.at
  %enough = icmp sge i32 %running, %wanted
  br i1 %enough, label %done, label %start
start:
  %slot = call ptr @tw.slot_of(ptr %pool, i32 %running)
  %thread = getelementptr %tw.slot, ptr %slot, i64 0, i32 6
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @tw.work, ptr %slot)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %fewer, label %started
started:
  %running.next = add i32 %running, 1
  store i32 %running.next, ptr %running.at
  br label %next
fewer:
  %threads = add i32 %running, 1
  store atomic i32 %threads, ptr @tw.threads monotonic, align 4
  br label %done
done:
  ret i32 %running
}

; Ends all workers and waits until they have left this code, which may be unmapped next.
define internal void @tw.end_workers(ptr %pool) {
  %job = call i32 @tw.next_sequence(ptr %pool)
  %running.at = getelementptr %tw.pool, ptr %pool, i64 0, i32 2
  br label %next
next:
  %running = load i32, ptr %running.at
  %any = icmp sgt i32 %running, 0
  br i1 %any, label %end, label %done
end:
  %worker = sub i32 %running, 1
  %slot = call ptr @tw.slot_of(ptr %pool, i32 %worker)
  call void @tw.post(ptr %slot, i32 %job, ptr null, ptr null, i64 0, i64 0)
  call void @tw.wake(ptr %slot)
  %thread.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 6
  %thread = load i64, ptr %thread.at
  call i32 @pthread_join(i64 %thread, ptr null)
  store i32 %worker, ptr %running.at
  br label %next
done:
  ret void
}

define internal i32 @tw.next_sequence(ptr %pool) {
  %sequence.at = getelementptr %tw.pool, ptr %pool, i64 0, i32 1
  %sequence = load i32, ptr %sequence.at
  %job = add i32 %sequence, 1
  store i32 %job, ptr %sequence.at
  ret i32 %job
}
"""
