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
