from __future__ import annotations

import pytest

from tests.for_each import for_each
from tilewright.codegen.objects.compile import (
    compile_assembly,
    compile_object,
    optimized_llvm,
    target_machine,
)
from tilewright.core.errors import CodegenError
from tilewright.target.host import host
from tilewright.target.registry import CPUS

ADD = """
define float @f(float %x, float %y) {
  %p = fmul contract float %x, %y
  %s = fadd contract float %p, %x
  ret float %s
}
"""


@for_each("name", CPUS)
def test_every_named_target_gives_an_object(name: str) -> None:
    assert compile_object(ADD, CPUS[name])[:4] == b"\x7fELF"
    assert target_machine(CPUS[name]).triple == CPUS[name].triple


def test_contraction_gives_one_instruction() -> None:
    assert "vfmadd" in compile_assembly(ADD, CPUS["x86-64-v3"])
    assert "fmadd" in compile_assembly(ADD, CPUS["aarch64"])


def test_text_that_llvm_refuses_is_an_error_of_ours() -> None:
    with pytest.raises(CodegenError, match=r"codegen.llvm"):
        compile_object("define i32 @f() { ret i64 0 }", host())


def test_optimized_text_is_text() -> None:
    text = "define i64 @f(i64 %x) { %a = add i64 %x, 0\n ret i64 %a }"
    assert "add i64" not in optimized_llvm(text, host())


CALLS = """
define internal i64 @plain(i64 %x) noinline { %a = add i64 %x, 1\n ret i64 %a }
define internal i64 @tw.part(i64 %x) alwaysinline { %a = add i64 %x, 1\n ret i64 %a }
define i64 @f(i64 %x) { %a = call i64 @tw.part(i64 %x)\n %b = call i64 @plain(i64 %a)\n ret i64 %b }
"""


def test_a_kernel_takes_in_what_says_so_and_nothing_else() -> None:
    text = optimized_llvm(CALLS, host())
    assert "@tw.part" not in text
    assert "call i64 @plain" in text
