"""The monotonic clock in nanoseconds, `i64 tw_now()`, for profiling without Python."""

CLOCK_IR = """
declare i32 @clock_gettime(i32, ptr)

define i64 @tw_now() nounwind {
  %time = alloca [2 x i64], align 8
  ; 1 is CLOCK_MONOTONIC on Linux.
  %status = call i32 @clock_gettime(i32 1, ptr %time)
  %nanoseconds.at = getelementptr inbounds i64, ptr %time, i64 1
  %seconds = load i64, ptr %time, align 8
  %nanoseconds = load i64, ptr %nanoseconds.at, align 8
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %nanoseconds
  ret i64 %now
}
"""

NOTE_IR = """
; Adds the time since the last note to a number, unless there is none; notes the time.
define internal void @tw_note(ptr %ns, i64 %number, ptr %clock) nounwind {
  %profiled = icmp ne ptr %ns, null
  br i1 %profiled, label %note, label %done
note:
  %now = call i64 @tw_now()
  %before = load i64, ptr %clock, align 8
  store i64 %now, ptr %clock, align 8
  %starts = icmp slt i64 %number, 0
  br i1 %starts, label %done, label %add
add:
  %slot = getelementptr inbounds i64, ptr %ns, i64 %number
  %sofar = load i64, ptr %slot, align 8
  %elapsed = sub i64 %now, %before
  %total = add i64 %sofar, %elapsed
  store i64 %total, ptr %slot, align 8
  br label %done
done:
  ret void
}
"""
