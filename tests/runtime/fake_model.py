"""A small model written by hand in LLVM IR, for testing the runtime without the compiler.

    y[i, j] = x[i, j] + w[j]     x: f32[N, 3]        s = z followed by z     z: f32[N]

It fails with status 7 when N is 13. Its second kernel reads what the first left in the arena.
"""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
import numpy as np

from tilewright.codegen.host.call_frame import CALL_IR
from tilewright.codegen.host.threadpool.pool import threadpool_ir
from tilewright.runtime.container import Container, assemble_weights

WEIGHTS = np.array([0.5, -2.0, 1e-3], np.float32)

MODEL_IR = """
%ctx = type { ptr, ptr, ptr, ptr, ptr, ptr, i64 }  ; x z y s arena weights N
declare void @tw_parallel(ptr, ptr, i64)

define internal void @add(ptr %ctx, i64 %begin, i64 %end) {
  %c = load %ctx, ptr %ctx
  %x = extractvalue %ctx %c, 0
  %z = extractvalue %ctx %c, 1
  %y = extractvalue %ctx %c, 2
  %arena = extractvalue %ctx %c, 4
  %weights = extractvalue %ctx %c, 5
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %rows, label %done
rows:
  %i = phi i64 [ %begin, %0 ], [ %i.next, %row ]
  %z.at = getelementptr float, ptr %z, i64 %i
  %v = load float, ptr %z.at
  %arena.at = getelementptr float, ptr %arena, i64 %i
  store float %v, ptr %arena.at
  %base = mul i64 %i, 3
  br label %columns
columns:
  %j = phi i64 [ 0, %rows ], [ %j.next, %columns ]
  %at = add i64 %base, %j
  %x.at = getelementptr float, ptr %x, i64 %at
  %w.at = getelementptr float, ptr %weights, i64 %j
  %a = load float, ptr %x.at
  %b = load float, ptr %w.at
  %sum = fadd float %a, %b
  %y.at = getelementptr float, ptr %y, i64 %at
  store float %sum, ptr %y.at
  %j.next = add i64 %j, 1
  %j.more = icmp ult i64 %j.next, 3
  br i1 %j.more, label %columns, label %row
row:
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %end
  br i1 %i.more, label %rows, label %done
done:
  ret void
}

define internal void @twice(ptr %ctx, i64 %begin, i64 %end) {
  %c = load %ctx, ptr %ctx
  %s = extractvalue %ctx %c, 3
  %arena = extractvalue %ctx %c, 4
  %n = extractvalue %ctx %c, 6
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %rows, label %done
rows:
  %i = phi i64 [ %begin, %0 ], [ %i.next, %rows ]
  %arena.at = getelementptr float, ptr %arena, i64 %i
  %v = load float, ptr %arena.at
  %first.at = getelementptr float, ptr %s, i64 %i
  store float %v, ptr %first.at
  %shifted = add i64 %i, %n
  %second.at = getelementptr float, ptr %s, i64 %shifted
  store float %v, ptr %second.at
  %i.next = add i64 %i, 1
  %i.more = icmp ult i64 %i.next, %end
  br i1 %i.more, label %rows, label %done
done:
  ret void
}

define i32 @tw_main(ptr %inputs, ptr %outputs, ptr %dims, ptr %arena, ptr %weights) {
  %ctx = alloca %ctx
  %x = load ptr, ptr %inputs
  %z.at = getelementptr ptr, ptr %inputs, i64 1
  %z = load ptr, ptr %z.at
  %y = load ptr, ptr %outputs
  %s.at = getelementptr ptr, ptr %outputs, i64 1
  %s = load ptr, ptr %s.at
  %n = load i64, ptr %dims
  %c0 = insertvalue %ctx poison, ptr %x, 0
  %c1 = insertvalue %ctx %c0, ptr %z, 1
  %c2 = insertvalue %ctx %c1, ptr %y, 2
  %c3 = insertvalue %ctx %c2, ptr %s, 3
  %c4 = insertvalue %ctx %c3, ptr %arena, 4
  %c5 = insertvalue %ctx %c4, ptr %weights, 5
  %c6 = insertvalue %ctx %c5, i64 %n, 6
  store %ctx %c6, ptr %ctx
  %unlucky = icmp eq i64 %n, 13
  br i1 %unlucky, label %fail, label %run
fail:
  ret i32 7
run:
  call void @tw_parallel(ptr @add, ptr %ctx, i64 %n)
  call void @tw_parallel(ptr @twice, ptr %ctx, i64 %n)
  ret i32 0
}

define i32 @tw_main_profiled(ptr %i, ptr %o, ptr %dims, ptr %arena, ptr %weights, ptr %ns) {
  %status = call i32 @tw_main(ptr %i, ptr %o, ptr %dims, ptr %arena, ptr %weights)
  %first = load i64, ptr %ns
  %first.new = add i64 %first, 1000
  store i64 %first.new, ptr %ns
  %second.at = getelementptr i64, ptr %ns, i64 1
  %second = load i64, ptr %second.at
  %second.new = add i64 %second, 3000
  store i64 %second.new, ptr %second.at
  ret i32 %status
}

define i64 @tw_arena_size(ptr %dims) {
  %n = load i64, ptr %dims
  %size = mul i64 %n, 4
  ret i64 %size
}

define void @tw_output_shapes(ptr %dims, ptr %out) {
  %n = load i64, ptr %dims
  store i64 %n, ptr %out
  %1 = getelementptr i64, ptr %out, i64 1
  store i64 3, ptr %1
  %2 = getelementptr i64, ptr %out, i64 2
  %double = mul i64 %n, 2
  store i64 %double, ptr %2
  ret void
}
"""


def compile_ir(text: str) -> bytes:
    """The object file of `text` for this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(
        opt=2, reloc="pic", codemodel="small"
    )
    return machine.emit_object(module)


def manifest(**changes: Any) -> dict[str, Any]:
    return {
        "target": {"triple": llvm.get_default_triple(), "cpu": "generic", "features": []},
        "symbols": ["N"],
        "dim_sources": [[0, 0]],
        "inputs": [
            {"name": "x", "dtype": "f32", "shape": ["N", 3]},
            {"name": "z", "dtype": "f32", "shape": ["N"]},
        ],
        "outputs": [
            {"name": "y", "dtype": "f32", "shape": ["N", 3]},
            {"name": "s", "dtype": "f32", "shape": ["2 * N"]},
        ],
        "kernels": [
            {"name": "add", "flops": 3e6, "bytes": None},
            {"name": "twice", "flops": None, "bytes": None},
        ],
        "explain": "two kernels",
        "counters": {"kernels": 2},
        "threads": 2,
        **changes,
    }


def objects() -> dict[str, bytes]:
    return {
        "model": compile_ir(MODEL_IR),
        "call": compile_ir(CALL_IR),
        "threads": compile_ir(threadpool_ir(llvm.get_default_triple())),
    }


def container(**changes: Any) -> Container:
    weights = assemble_weights([(0, WEIGHTS)], WEIGHTS.nbytes)
    return Container(manifest(**changes), objects(), weights)


def arguments(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random((n, 3), np.float32), rng.random(n, np.float32)


def expected(x: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return x + WEIGHTS, np.concatenate([z, z])
