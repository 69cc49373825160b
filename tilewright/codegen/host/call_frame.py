"""`i32 tw_call(ptr frame)`: a call whose arguments are all in one block of memory.

The caller keeps the block between calls and changes only what changed. It holds, in words of eight
bytes:

    0 the number of inputs   1 an offset   2 dims   3 arena   4 weights   5 ns, or null
    6 slots for the inputs' addresses, then as many holders, then the outputs' addresses

The address of an input is read from its holder at the given offset: a holder is any object that
keeps its data's address there, such as a NumPy array. With `ns` the call is profiled.
"""

CALL_IR = """
declare i32 @tw_main(ptr, ptr, ptr, ptr, ptr)
declare i32 @tw_main_profiled(ptr, ptr, ptr, ptr, ptr, ptr)

define i32 @tw_call(ptr %frame) nounwind {
entry:
  %count = load i64, ptr %frame, align 8
  %offset.at = getelementptr inbounds i64, ptr %frame, i64 1
  %offset = load i64, ptr %offset.at, align 8
  %inputs = getelementptr inbounds i64, ptr %frame, i64 6
  %holders = getelementptr inbounds i64, ptr %inputs, i64 %count
  %outputs = getelementptr inbounds i64, ptr %holders, i64 %count
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %input ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %input, label %run
input:
  %holder.at = getelementptr inbounds ptr, ptr %holders, i64 %i
  %holder = load ptr, ptr %holder.at, align 8
  %data.at = getelementptr inbounds i8, ptr %holder, i64 %offset
  %data = load ptr, ptr %data.at, align 8
  %input.at = getelementptr inbounds ptr, ptr %inputs, i64 %i
  store ptr %data, ptr %input.at, align 8
  %i.next = add nuw i64 %i, 1
  br label %next
run:
  %dims.at = getelementptr inbounds ptr, ptr %frame, i64 2
  %dims = load ptr, ptr %dims.at, align 8
  %arena.at = getelementptr inbounds ptr, ptr %frame, i64 3
  %arena = load ptr, ptr %arena.at, align 8
  %weights.at = getelementptr inbounds ptr, ptr %frame, i64 4
  %weights = load ptr, ptr %weights.at, align 8
  %ns.at = getelementptr inbounds ptr, ptr %frame, i64 5
  %ns = load ptr, ptr %ns.at, align 8
  %plain = icmp eq ptr %ns, null
  br i1 %plain, label %unmeasured, label %measured
unmeasured:
  %status = call i32 @tw_main(ptr %inputs, ptr %outputs, ptr %dims, ptr %arena, ptr %weights)
  ret i32 %status
measured:
  %status.measured = call i32 @tw_main_profiled(
    ptr %inputs, ptr %outputs, ptr %dims, ptr %arena, ptr %weights, ptr %ns)
  ret i32 %status.measured
}
"""
