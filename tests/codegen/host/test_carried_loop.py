"""The native loop: steps, what they carry, and where results end."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm

from tests.for_each import for_each
from tilewright.codegen.host.carried_loop import Buffers, emit_carried_loop
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.target.host import host

PARAMS = [
    ("%initial", "ptr"),
    ("%result", "ptr"),
    ("%spare", "ptr"),
    ("%count", "i64"),
    ("%most", "i64"),
]


def module(known: bool) -> str:
    """A loop that adds its step's number and one to a number, until that is beyond `most`."""
    text = ModuleBuilder()
    fn = FunctionBuilder(text, "sums", PARAMS)

    def step(number: str, reads: list[str], writes: list[str]) -> str:
        before = fn.let(f"load i64, ptr {reads[0]}, align 8")
        more = fn.let(f"add i64 {before}, {number}")
        after = fn.let(f"add i64 {more}, 1")
        fn.emit(f"store i64 {after}, ptr {writes[0]}, align 8")
        return "" if known else fn.let(f"icmp sle i64 {after}, %most")

    begin = fn.let("icmp sge i64 %most, 0")
    carried = [Buffers("%initial", "%result", "%spare", "8")]
    steps = emit_carried_loop(fn, "%count", begin, known, carried, step)
    fn.finish("nounwind", f"i64 {steps}")
    return text.text()


@for_each("known", [True, False])
def test_the_result_is_where_it_belongs(known: bool) -> None:
    library = llvm.JITLibraryBuilder().add_current_process()
    library.add_object_img(compile_object(module(known), host()))
    library.export_symbol("sums")
    linker = llvm.create_lljit_compiler(use_jit_link=True)
    code = library.link(linker, "sums")
    kinds = [ctypes.c_void_p] * 3 + [ctypes.c_int64] * 2
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *kinds)(code["sums"])
    for count in range(6):
        for most in (-1, 0, 4, 99):
            buffers = [ctypes.c_int64(v) for v in (10, 0, 0)]
            total, steps = 10, 0
            while steps < count and (known or (most >= 0 and (steps == 0 or total <= most))):
                steps += 1
                total += steps
            assert call(*map(ctypes.addressof, buffers), count, most) == steps
            assert buffers[1].value == total
            assert buffers[0].value == 10
    code.close()
    linker.close()
