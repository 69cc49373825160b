"""The workers of the thread pool as LLVM IR: their main loop, start and end.

The types `%tw.pool` and `%tw.slot`, the declarations and the `$names` of the template are in
`pool.py`, which concatenates the parts.
"""

from __future__ import annotations

WORKER = """
; Waits for a job other than %seen and returns its number: polls first, then sleeps.
define internal i32 @tw.next_job(ptr %slot, i32 %seen) {
  %posted.at = getelementptr i8, ptr %slot, i64 4  ; the offer's upper half
  %asleep = getelementptr %tw.slot, ptr %slot, i64 0, i32 9
  %limit = load atomic i32, ptr @tw.spins monotonic, align 4
  br label %poll
poll:
  %spins = phi i32 [ 0, %0 ], [ %spins.next, %pause ]
  %polled = load atomic i32, ptr %posted.at acquire, align 4
  %fresh = icmp ne i32 %polled, %seen
  br i1 %fresh, label %polled.job, label %wait
wait:
  %more = icmp slt i32 %spins, %limit
  br i1 %more, label %pause, label %announce
pause:
  $pause
  %spins.next = add i32 %spins, 1
  br label %poll
polled.job:
  ret i32 %polled
announce:  ; sequentially consistent, as in tw.wake: one of the two sides sees the other's store
  store atomic i32 1, ptr %asleep seq_cst, align 4
  br label %look
look:
  %posted = load atomic i32, ptr %posted.at seq_cst, align 4
  %woken = icmp ne i32 %posted, %seen
  br i1 %woken, label %awake, label %sleep
sleep:  ; FUTEX_WAIT | FUTEX_PRIVATE: returns at once if the number is no longer %seen
  %expected = zext i32 %seen to i64
  call i64 (i64, ...) @syscall(i64 $futex, ptr %posted.at, i64 128, i64 %expected, ptr null)
  br label %look
awake:
  store atomic i32 0, ptr %asleep monotonic, align 4
  ret i32 %posted
}

; The main loop of a worker: run chunks of job after job, until `ending` is set.
define internal ptr @tw.work(ptr %slot) {
  %pool = load atomic ptr, ptr @tw.pool acquire, align 8
  %pending = getelementptr %tw.pool, ptr %pool, i64 0, i32 4
  %parts.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 6
  %me.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 7
  %me = load i32, ptr %me.at
  ; not the number in the offer: a job may have been posted before this thread came to life
  %before.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 10
  %before = load i32, ptr %before.at
  %ending.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 12
  br label %next
next:
  %seen = phi i32 [ %before, %0 ], [ %job, %run ], [ %job, %report ]
  %job = call i32 @tw.next_job(ptr %slot, i32 %seen)
  %ending = load atomic i32, ptr %ending.at acquire, align 4
  %over = icmp ne i32 %ending, 0
  br i1 %over, label %leave, label %run
run:
  %parts = load atomic i32, ptr %parts.at monotonic, align 4
  %done = call i64 @tw.take_part(ptr %pool, i32 %me, i32 %job, i32 %parts)
  %idle = icmp eq i64 %done, 0
  br i1 %idle, label %next, label %report
report:
  atomicrmw sub ptr %pending, i64 %done acq_rel, align 8
  br label %next
leave:
  ret ptr null
}
"""

WORKERS = """
; Starts workers until %wanted run; the pool works with fewer where the system refuses more.
define internal i32 @tw.start_workers(ptr %pool, i32 %wanted) {
  %running.at = getelementptr %tw.pool, ptr %pool, i64 0, i32 2
  %sequence.at = getelementptr %tw.pool, ptr %pool, i64 0, i32 1
  br label %next
next:
  %running = load i32, ptr %running.at
  %enough = icmp sge i32 %running, %wanted
  br i1 %enough, label %done, label %start
start:
  call void @tw.need_spins()
  %running.next = add i32 %running, 1
  %slot = call ptr @tw.slot_of(ptr %pool, i32 %running.next)
  %me.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 7
  store i32 %running.next, ptr %me.at
  %sequence = load i32, ptr %sequence.at
  %before.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 10
  store i32 %sequence, ptr %before.at
  call void @tw.publish(ptr %slot, i32 %sequence, i32 0)
  %ending.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 12
  store atomic i32 0, ptr %ending.at monotonic, align 4
  %thread = getelementptr %tw.slot, ptr %slot, i64 0, i32 11
  %status = call i32 @pthread_create(ptr %thread, ptr null, ptr @tw.work, ptr %slot)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %fewer, label %started
started:
  store i32 %running.next, ptr %running.at
  br label %next
fewer:
  store atomic i32 %running.next, ptr @tw.threads monotonic, align 4
  br label %done
done:
  ret i32 %running
}

; Ends all workers and joins them: this code may be unmapped next.
define internal void @tw.end_workers(ptr %pool) {
  %job = call i32 @tw.next_sequence(ptr %pool)
  %running.at = getelementptr %tw.pool, ptr %pool, i64 0, i32 2
  br label %next
next:
  %running = load i32, ptr %running.at
  %any = icmp sgt i32 %running, 0
  br i1 %any, label %end, label %done
end:
  %slot = call ptr @tw.slot_of(ptr %pool, i32 %running)
  %ending.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 12
  store atomic i32 1, ptr %ending.at release, align 4
  call void @tw.publish(ptr %slot, i32 %job, i32 0)
  call void @tw.wake(ptr %slot)
  %thread.at = getelementptr %tw.slot, ptr %slot, i64 0, i32 11
  %thread = load i64, ptr %thread.at
  call i32 @pthread_join(i64 %thread, ptr null)
  %worker = sub i32 %running, 1
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
