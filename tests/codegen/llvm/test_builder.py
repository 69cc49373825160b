from __future__ import annotations

from tilewright.arith.expr import Var
from tilewright.codegen.llvm.builder import FunctionBuilder, ModuleBuilder


def test_module_text() -> None:
    module = ModuleBuilder()
    module.declare("llvm.fabs.f32", "float (float)")
    module.declare("llvm.fabs.f32", "float (float)")
    fn = FunctionBuilder(module, "f", [("%n", "i64")])
    fn.emit(f"store i64 %n, ptr {fn.entry_alloca('i64', 'a')}, align 8")
    total = fn.let("add i64 %n, 1")
    fn.finish("nounwind", f"i64 {total}")
    assert module.text() == (
        "declare float @llvm.fabs.f32(float)\n\n"
        "define i64 @f(i64 %n) nounwind {\n"
        "entry:\n  %a1 = alloca i64\n  store i64 %n, ptr %a1, align 8\n"
        "  %t2 = add i64 %n, 1\n  ret i64 %t2\n}\n"
    )


def test_what_is_known_in_a_scope_is_forgotten_after_it() -> None:
    fn = FunctionBuilder(ModuleBuilder(), "f", [])
    outer, inner = Var("outer"), Var("inner")
    fn.remember(outer, "%1")
    with fn.scope():
        fn.remember(inner, "%2")
        assert fn.lookup(outer) == "%1"
        assert fn.lookup(inner) == "%2"
    assert fn.lookup(inner) is None


def test_names_and_labels_are_fresh() -> None:
    fn = FunctionBuilder(ModuleBuilder(), "f", [])
    names = [fn.fresh(), fn.fresh("x"), f"%{fn.label('x')}", fn.fresh("x")]
    assert len(set(names)) == 4


def test_zeros_are_defined_once() -> None:
    module = ModuleBuilder()
    assert module.zeros() == module.zeros()
    assert module.text().count("zeroinitializer") == 1


def test_what_is_set_up_for_a_function_is_set_up_again_after_calls() -> None:
    module = ModuleBuilder()
    fn = FunctionBuilder(module, "f", [])
    fn.emit("call void @other()")
    fn.called()
    fn.surround("state")
    fn.surround("state")
    fn.emit("call void @work()")
    fn.finish()
    calls = [line.split("@")[1] for line in module.text().splitlines() if "call" in line]
    begin, end = "state.begin()", "state.end()"
    assert calls == [begin, "other()", begin, "work()", end]


def test_what_leaves_a_loop_stands_before_it() -> None:
    module = ModuleBuilder()
    fn = FunctionBuilder(module, "f", [("%n", "i64")], hoists=True)
    with fn.for_range("0", "%n"):
        depth = fn.scopes[-1].costly
        with fn.at_depth(depth):
            fn.emit("call void @outside()")
        fn.emit("call void @inside()")
    fn.finish()
    text = module.text()
    order = [text.index(part) for part in ("@outside", "phi", "@inside")]
    assert depth == 0
    assert order == sorted(order)


def test_only_what_is_cheap_leaves_a_branch() -> None:
    fn = FunctionBuilder(ModuleBuilder(), "f", [], hoists=True)
    with fn.construct(), fn.branch():
        assert (fn.scopes[-1].cheap, fn.scopes[-1].costly) == (0, fn.depth)
        with fn.construct():
            assert (fn.scopes[-1].cheap, fn.scopes[-1].costly) == (0, fn.depth - 1)


def test_nothing_leaves_a_scope_of_a_function_that_does_not_hoist() -> None:
    fn = FunctionBuilder(ModuleBuilder(), "f", [])
    with fn.construct():
        assert (fn.scopes[-1].cheap, fn.scopes[-1].costly) == (fn.depth, fn.depth)
