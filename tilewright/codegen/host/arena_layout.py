"""`i64 tw_place(ptr sizes, ptr offsets)`: lays out the arena when sizes are known, at run time.

It is `runtime.arena_layout.first_fit` as native code. The conflicts are constant tables:
`firsts[i]` to `firsts[i + 1]` are the positions in `others` of the buffers that buffer i must not
overlap. Where all buffers conflict, each begins at the end of the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from string import Template

from tilewright.codegen.llvm.builder import ModuleBuilder
from tilewright.passes.memory.plan_memory import RuntimePlacement


def emit_placement(module: ModuleBuilder, placement: RuntimePlacement) -> None:
    """Define `tw_place` for a placement."""
    count = len(placement.sizes)
    if placement.conflicts is None:
        module.definitions.append(_PLACE_IN_ROW.substitute(count=count))
        return
    firsts = [0, *accumulate(len(c) for c in placement.conflicts)]
    others = [j for c in placement.conflicts for j in c] or [0]
    tables = f"{_table('firsts', firsts)}\n{_table('others', others)}\n"
    module.definitions.append(tables + _PLACE.substitute(count=count))


def _table(name: str, values: Sequence[int]) -> str:
    items = ", ".join(f"i64 {v}" for v in values)
    return f"@tw_place.{name} = internal constant [{len(values)} x i64] [{items}]"


_PLACE_IN_ROW = Template("""
define internal i64 @tw_place(ptr %sizes, ptr %offsets) nounwind {
entry:
  br label %buffer
buffer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %place ]
  %top = phi i64 [ 0, %entry ], [ %end, %place ]
  %more = icmp ult i64 %i, $count
  br i1 %more, label %place, label %done
place:
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %offset.at = getelementptr i64, ptr %offsets, i64 %i
  store i64 %top, ptr %offset.at
  %end = add i64 %top, %size
  %i.next = add i64 %i, 1
  br label %buffer
done:
  ret i64 %top
}
""")
_PLACE = Template("""
define internal i64 @tw_place(ptr %sizes, ptr %offsets) nounwind {
entry:
  br label %buffer
buffer:
  %i = phi i64 [ 0, %entry ], [ %i.next, %placed ]
  %top = phi i64 [ 0, %entry ], [ %top.new, %placed ]
  %more = icmp ult i64 %i, $count
  br i1 %more, label %begin, label %done
begin:
  %size.at = getelementptr i64, ptr %sizes, i64 %i
  %size = load i64, ptr %size.at
  %first.at = getelementptr i64, ptr @tw_place.firsts, i64 %i
  %first = load i64, ptr %first.at
  %last.at = getelementptr i64, ptr %first.at, i64 1
  %last = load i64, ptr %last.at
  br label %sweep
sweep:
  ; try an offset against all conflicting buffers; one that is moved is tried again
  %start = phi i64 [ 0, %begin ], [ %offset, %swept ]
  br label %conflict
conflict:
  %c = phi i64 [ %first, %sweep ], [ %c.next, %checked ]
  %offset = phi i64 [ %start, %sweep ], [ %offset.new, %checked ]
  %left = icmp ult i64 %c, %last
  br i1 %left, label %check, label %swept
check:
  %other.at = getelementptr i64, ptr @tw_place.others, i64 %c
  %other = load i64, ptr %other.at
  %other.offset.at = getelementptr i64, ptr %offsets, i64 %other
  %other.offset = load i64, ptr %other.offset.at
  %other.size.at = getelementptr i64, ptr %sizes, i64 %other
  %other.size = load i64, ptr %other.size.at
  %other.end = add i64 %other.offset, %other.size
  %end = add i64 %offset, %size
  %before = icmp slt i64 %offset, %other.end
  %after = icmp slt i64 %other.offset, %end
  %overlaps = and i1 %before, %after
  %offset.new = select i1 %overlaps, i64 %other.end, i64 %offset
  br label %checked
checked:
  %c.next = add i64 %c, 1
  br label %conflict
swept:
  %moved = icmp ne i64 %offset, %start
  br i1 %moved, label %sweep, label %placed
placed:
  %offset.at = getelementptr i64, ptr %offsets, i64 %i
  store i64 %offset, ptr %offset.at
  %buffer.end = add i64 %offset, %size
  %higher = icmp sgt i64 %buffer.end, %top
  %top.new = select i1 %higher, i64 %buffer.end, i64 %top
  %i.next = add i64 %i, 1
  br label %buffer
done:
  ret i64 %top
}
""")
