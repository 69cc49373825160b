"""Inter-op parallelism: independent kernel calls are the tasks of one job of the thread pool.

Each call is one task. A kernel with parallel loops runs them inline on the thread that claims the
task, as nested jobs do.

    void body(ptr context, i64 begin, i64 end)      the calls from `begin` to `end`

The context holds the arguments of all calls, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.codegen.llvm.builder import FunctionBuilder

# A call: the kernel, and its arguments as LLVM types and registers.
Call = tuple[str, Sequence[tuple[str, str]]]

# Runs a job's calls: in parallel, or one after the other where they are timed.
_REGION = """
define internal void @tw_region(ptr %body, ptr %ctx, i64 %count, ptr %ns, i64 %first, ptr %clock)
    nounwind {
entry:
  %timed = icmp ne ptr %ns, null
  br i1 %timed, label %next, label %share
share:
  call void @tw_parallel(ptr %body, ptr %ctx, i64 %count)
  ret void
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %i.next = add i64 %i, 1
  call void %body(ptr %ctx, i64 %i, i64 %i.next)
  %number = add i64 %first, %i
  call void @tw_note(ptr %ns, i64 %number, ptr %clock)
  %more = icmp slt i64 %i.next, %count
  br i1 %more, label %next, label %leave
leave:
  ret void
}
"""


def emit_region(fn: FunctionBuilder, calls: Sequence[Call], number: int, clock: str) -> None:
    """Run calls side by side; timed, as numbers of `%ns` from `number` on, one after the other."""
    name = f"tw_region.{fn.label('r')}"
    count = sum(len(arguments) for _, arguments in calls)
    context = fn.entry_alloca(f"[{max(count, 1)} x i64], align 8", "ctx")
    values = (value for _, arguments in calls for value in arguments)
    for index, (kind, register) in enumerate(values):
        slot = fn.let(f"getelementptr inbounds i64, ptr {context}, i64 {index}")
        fn.emit(f"store {kind} {register}, ptr {slot}, align 8")
    fn.module.declare("tw_parallel", "void (ptr, ptr, i64)")
    fn.module.include("tw_region", _REGION)
    fn.module.definitions.append(_body(name, calls))
    job = f"ptr @{name}, ptr {context}, i64 {len(calls)}"
    fn.emit(f"call void @tw_region({job}, ptr %ns, i64 {number}, ptr {clock})")


def _body(name: str, calls: Sequence[Call]) -> str:
    choices = " ".join(f"i64 {i}, label %call{i}" for i in range(len(calls)))
    lines = [
        f"define internal void @{name}(ptr %ctx, i64 %begin, i64 %end) nounwind {{",
        "entry:",
        "  br label %next",
        "next:",
        "  %i = phi i64 [ %begin, %entry ], [ %i.next, %done ]",
        "  %more = icmp slt i64 %i, %end",
        "  br i1 %more, label %choose, label %leave",
        "choose:",
        f"  switch i64 %i, label %done [ {choices} ]",
    ]
    first = 0
    for i, (kernel, arguments) in enumerate(calls):
        lines.append(f"call{i}:")
        given = []
        for index, (kind, _) in enumerate(arguments, first):
            lines.append(f"  %at{index} = getelementptr inbounds i64, ptr %ctx, i64 {index}")
            lines.append(f"  %arg{index} = load {kind}, ptr %at{index}, align 8")
            given.append(f"{kind} %arg{index}")
        first += len(arguments)
        lines += [f"  call void @{kernel}({', '.join(given)})", "  br label %done"]
    lines += ["done:", "  %i.next = add i64 %i, 1", "  br label %next", "leave:", "  ret void", "}"]
    return "\n".join(lines)
