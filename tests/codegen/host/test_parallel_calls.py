"""Calls of one job: each is run once, with its own arguments, on whatever threads there are."""

from __future__ import annotations

from tilewright.codegen.host.parallel_calls import emit_region
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.objects.compile import compile_object
from tilewright.target.host import host


def _module() -> str:
    module = ModuleBuilder()
    for kernel in ("one", "two"):
        module.declare(kernel, "void (ptr, i64)")
    module.declare("tw_note", "void (ptr, i64, ptr)")
    fn = FunctionBuilder(module, "main", [("%p", "ptr"), ("%n", "i64"), ("%ns", "ptr")])
    first = ("one", [("ptr", "%p"), ("i64", "%n")])
    second = ("two", [("ptr", "%p"), ("i64", "7")])
    emit_region(fn, [first, second], 5, "%p")
    emit_region(fn, [second, first], 7, "%p")
    fn.finish()
    return module.text()


def test_each_call_has_its_own_arguments() -> None:
    text = _module()
    assert text.count("define internal void @tw_region(") == 1
    assert text.count("define internal void @tw_region.") == 2
    body = text[text.index("@tw_region.") :]
    assert body.index("%arg1 = load i64") < body.index("call void @one(ptr %arg0, i64 %arg1)")
    assert body.index("%arg3 = load i64") < body.index("call void @two(ptr %arg2, i64 %arg3)")
    assert "i64 2, ptr %ns, i64 5, ptr %p)" in text


def test_it_compiles() -> None:
    assert compile_object(_module(), host())
