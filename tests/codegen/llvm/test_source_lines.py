from __future__ import annotations

import re

import pytest

from tests.models import convnet
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder
from tilewright.codegen.llvm.source_lines import SourceLines
from tilewright.codegen.objects.compile import compile_assembly
from tilewright.driver.compile_graph import lower
from tilewright.driver.kernel.backend import backend_of
from tilewright.driver.options import make_options
from tilewright.ir.loop.nodes import For, Store
from tilewright.ir.loop.text import parse_func
from tilewright.ir.loop.walk import statements

SOURCE = """\
func @f(x: f32[8], out y: f32[8]) {
  for i in serial(8) {
    y[i] = x[i] * 2.0
  }
}
"""


def test_statements_have_the_lines_of_their_text() -> None:
    func = parse_func(SOURCE)
    lines = SourceLines(func)
    found = {type(s): lines.line(s) for _, s in statements(func.body)}
    assert (found[For], found[Store]) == (2, 3)
    assert lines.line(parse_func(SOURCE).body) is None  # equal is not the same


def test_instructions_carry_the_innermost_line() -> None:
    func = parse_func(SOURCE)
    ((_, store),) = [(p, s) for p, s in statements(func.body) if isinstance(s, Store)]
    fn = FunctionBuilder(ModuleBuilder(source_lines=SourceLines(func)), "f", [])
    before = fn.enter(store)
    fn.emit("unreachable")
    assert before == ""
    assert re.fullmatch(r"  unreachable, !dbg !\d+", fn.lines[0])


@pytest.mark.parametrize("target", ["x86-64-v3", "cuda -arch=sm_90a"])
def test_locations_change_neither_text_nor_code(target: str) -> None:
    build = lower(convnet(1), make_options(target))
    kernel = build.distinct_kernels["max_pool"]
    emit = backend_of(build.target).emit
    located = emit(kernel.finalized, kernel.dim_params, build.target, "f32", located=True)
    plain = re.sub(r",? !dbg !\d+", "", located.partition("\n\n!llvm.")[0])
    assert plain.strip() == kernel.llvm.strip()
    both = [compile_assembly(text, build.target) for text in (located, kernel.llvm)]
    assert ".loc" in both[0]
    assert _instructions(both[0]) == _instructions(both[1])


def _instructions(assembly: str) -> list[str]:
    return [line for line in assembly.splitlines() if re.match(r"\t[a-z]", line)]
