"""The thread pool linked into the test's process, with bodies in Python or in LLVM IR."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import llvmlite.binding as llvm

from tilewright.codegen.host.threadpool.pool import threadpool_ir

I32, I64, PTR = ctypes.c_int32, ctypes.c_int64, ctypes.c_void_p
BODY = ctypes.CFUNCTYPE(None, PTR, I64, I64)

# count: ctx[i] += 1 for each i of its chunk; repeat: so many parallel jobs of that body
BODIES_IR = """
define void @count(ptr %ctx, i64 %begin, i64 %end) {
  %any = icmp ult i64 %begin, %end
  br i1 %any, label %next, label %done
next:
  %i = phi i64 [ %begin, %0 ], [ %i.next, %next ]
  %at = getelementptr i64, ptr %ctx, i64 %i
  %old = load i64, ptr %at
  %new = add i64 %old, 1
  store i64 %new, ptr %at
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %end
  br i1 %more, label %next, label %done
done:
  ret void
}

define void @repeat(i64 %times, ptr %ctx, i64 %n) {
  br label %next
next:
  %i = phi i64 [ 0, %0 ], [ %i.next, %next ]
  call void @tw_parallel(ptr @count, ptr %ctx, i64 %n)
  %i.next = add i64 %i, 1
  %more = icmp ult i64 %i.next, %times
  br i1 %more, label %next, label %done
done:
  ret void
}
"""

_FUNCTIONS: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "tw_parallel": (None, (PTR, PTR, I64)),
    "tw_parallel_work": (None, (PTR, PTR, I64, I64)),
    "tw_set_threads": (None, (I32,)),
    "tw_get_threads": (I32, ()),
    "tw_set_spin": (None, (I32,)),
    "tw_shutdown": (None, ()),
    "repeat": (None, (I64, PTR, I64)),
}


class NativePool:
    """The pool's functions; `close` unloads them. `text` replaces the pool's own."""

    def __init__(self, text: str | None = None) -> None:
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly((text or threadpool_ir(llvm.get_default_triple())) + BODIES_IR)
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(
            opt=2, reloc="pic", codemodel="small"
        )
        library = llvm.JITLibraryBuilder().add_current_process()
        library.add_object_img(machine.emit_object(module))
        for name in _FUNCTIONS:
            library.export_symbol(name)
        self._linker = llvm.create_lljit_compiler(use_jit_link=True)
        self._code = library.link(self._linker, "pool")
        functions = {
            name: ctypes.CFUNCTYPE(result, *arguments)(self._code[name])
            for name, (result, arguments) in _FUNCTIONS.items()
        }
        self._parallel = functions["tw_parallel"]
        self._parallel_work = functions["tw_parallel_work"]
        self.set_threads = functions["tw_set_threads"]
        self.get_threads = functions["tw_get_threads"]
        self.set_spin = functions["tw_set_spin"]
        self.shutdown = functions["tw_shutdown"]
        self._repeat = functions["repeat"]

    def parallel(self, body: Callable[[int, int], None], n: int) -> None:
        """Run `body(begin, end)` over [0, n)."""
        native = BODY(lambda _, begin, end: body(begin, end))
        self._parallel(ctypes.cast(native, PTR), None, n)

    def parallel_work(self, body: Callable[[int, int], None], n: int, steps: int) -> None:
        """The same for a job of so many steps."""
        native = BODY(lambda _, begin, end: body(begin, end))
        self._parallel_work(ctypes.cast(native, PTR), None, n, steps)

    def count(self, times: int, n: int) -> list[int]:
        """How often each of [0, n) was visited by `times` parallel jobs in native code."""
        visits = (I64 * max(n, 1))()
        self._repeat(times, visits, n)
        return list(visits[:n])

    def close(self) -> None:
        self.shutdown()
        self._code.close()
        self._linker.close()
