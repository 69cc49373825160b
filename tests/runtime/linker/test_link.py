from __future__ import annotations

import ctypes
import math
import struct
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import llvmlite.binding as llvm
import pytest

from tests.runtime.fake_model import compile_ir
from tests.runtime.linker.test_elf import SAMPLE
from tilewright.core.errors import ExecutionError
from tilewright.runtime.linker import link as link_module
from tilewright.runtime.linker.elf import read_object
from tilewright.runtime.linker.link import LinkedCode, link

OTHER = """
@counter = external global i32
@big = internal constant <4 x float> <float 1.5, float 2.5, float 3.5, float 4.5>
@hidden = internal global i64 5
@where = internal global ptr @hidden
declare double @next(i64)
declare float @fmodf(float, float)
declare ptr @memcpy(ptr, ptr, i64)

define double @twice(i64 %i) {
  %a = call double @next(i64 %i)
  %b = call double @next(i64 %i)
  %s = fadd double %a, %b
  ret double %s
}
define void @four(ptr %out) {
  %v = load <4 x float>, ptr @big
  %w = fmul <4 x float> %v, <float 3.0, float 5.0, float 7.0, float 9.0>
  store <4 x float> %w, ptr %out, align 4
  ret void
}
define i64 @through() {
  %p = load ptr, ptr @where
  %v = load i64, ptr %p
  %w = add i64 %v, 1
  store i64 %w, ptr @hidden
  ret i64 %w
}
define ptr @place() { ret ptr @counter }
define float @rest(float %x, float %y) {
  %r = call float @fmodf(float %x, float %y)
  ret float %r
}
define void @copy(ptr %to, ptr %from, i64 %n) {
  call ptr @memcpy(ptr %to, ptr %from, i64 %n)
  ret void
}
define i32 @choose(i32 %i) {
  switch i32 %i, label %none [ i32 0, label %a i32 1, label %b i32 2, label %c i32 3, label %d
                               i32 4, label %e ]
a: ret i32 17
b: ret i32 4
c: ret i32 99
d: ret i32 5
e: ret i32 1
none: ret i32 -1
}
"""
F64, I64, PTR = ctypes.c_double, ctypes.c_int64, ctypes.c_void_p


@pytest.fixture
def code() -> Iterator[LinkedCode]:
    made = link({"sample": compile_ir(SAMPLE), "other": compile_ir(OTHER)})
    yield made
    made.close()


def function(code: LinkedCode, name: str, result: type | None, *arguments: type) -> object:
    return ctypes.CFUNCTYPE(result, *arguments)(code.address(name))


def test_objects_use_each_other_and_libc(code: LinkedCode) -> None:
    twice = function(code, "twice", F64, I64)
    assert twice(1) == math.sin(9) + math.sin(11)  # type: ignore[operator]
    assert twice(0) == math.sin(12) + math.sin(13)  # type: ignore[operator]
    rest = function(code, "rest", ctypes.c_float, ctypes.c_float, ctypes.c_float)
    assert rest(7.5, 2.0) == 1.5  # type: ignore[operator]


def test_constants_and_variables(code: LinkedCode) -> None:
    out = (ctypes.c_float * 5)()
    function(code, "four", None, PTR)(ctypes.addressof(out) + 4)  # type: ignore[operator]
    assert list(out) == [0, 4.5, 12.5, 24.5, 40.5]
    through = function(code, "through", I64)
    assert [through() for _ in range(3)] == [6, 7, 8]  # type: ignore[operator]
    place = function(code, "place", PTR)()  # type: ignore[operator]
    assert place == code.address("counter")
    assert PTR.from_address(code.address("pointer")).value == place


def test_jump_tables_and_calls_into_libc(code: LinkedCode) -> None:
    choose = function(code, "choose", ctypes.c_int32, ctypes.c_int32)
    assert [choose(i) for i in range(-1, 6)] == [-1, 17, 4, 99, 5, 1, -1]  # type: ignore[operator]
    source, target = (ctypes.c_char * 5)(*b"abcde"), (ctypes.c_char * 5)()
    function(code, "copy", None, PTR, PTR, I64)(target, source, 5)  # type: ignore[operator]
    assert target.raw == b"abcde"


def access(address: int) -> str | None:
    for line in Path("/proc/self/maps").read_text().splitlines():
        start, _, end = line.split()[0].partition("-")
        if int(start, 16) <= address < int(end, 16):
            return line.split()[1]
    return None


def test_code_may_not_be_written_nor_data_executed() -> None:
    code = link({"sample": compile_ir(SAMPLE)})
    assert access(code.address("next")) == "r-xp"
    assert access(code.address("counter")) == "rw-p"
    where = code.address("next")
    code.close()
    code.close()
    assert access(where) is None


def test_variables_are_each_ones_own() -> None:
    data = {"sample": compile_ir(SAMPLE)}
    codes = [link(data) for _ in range(3)]
    places = [code.address("counter") for code in codes]
    assert len(set(places)) == 3
    ctypes.c_int32.from_address(places[0]).value = 1
    assert ctypes.c_int32.from_address(places[1]).value == 7
    for code in codes:
        code.close()


def test_weak_symbols_give_way() -> None:
    value = "define {} i32 @value() {{ ret i32 {} }}"
    weak, strong = (compile_ir(value.format(*kind)) for kind in (("weak", 1), ("", 2)))
    for objects in ({"a": weak, "b": strong}, {"b": strong, "a": weak}):
        code = link(objects)
        assert function(code, "value", ctypes.c_int32)() == 2  # type: ignore[operator]
        code.close()
    with pytest.raises(ExecutionError, match="c defines value a second time"):
        link({"b": strong, "c": strong})


def test_what_cannot_be_found_is_named() -> None:
    text = "declare void @missing()  define void @f() { call void @missing() ret void }"
    with pytest.raises(ExecutionError, match="needs missing"):
        link({"f": compile_ir(text)})
    code = link({"sample": compile_ir(SAMPLE)})
    with pytest.raises(ExecutionError, match="no function tw_call"):
        code.address("tw_call")
    code.close()


def test_unknown_relocations_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"sample": compile_ir(SAMPLE)}
    for machine in link_module.MACHINES.values():
        kinds = {n: k for n, k in machine.kinds.items() if k.via != "stub"}
        monkeypatch.setattr(type(machine), "__setattr__", object.__setattr__)
        monkeypatch.setattr(machine, "kinds", kinds)
    with pytest.raises(ExecutionError, match="relocation of the unknown kind"):
        link(data)


def test_code_for_another_processor_is_refused() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    here = llvm.get_default_triple().partition("-")[0]
    other = "x86_64-linux-gnu" if here == "aarch64" else "aarch64-linux-gnu"
    machine = llvm.Target.from_triple(other).create_target_machine(reloc="pic", codemodel="small")
    data = machine.emit_object(llvm.parse_assembly(SAMPLE))
    with pytest.raises(ExecutionError, match="foreign is for another processor"):
        link({"sample": compile_ir(SAMPLE), "foreign": data})


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_references_lead_where_they_should(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Follow them in the image, as the processor would; this needs neither processor."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(f"{machine}-linux-gnu").create_target_machine(
        reloc="pic", codemodel="small"
    )
    data = target.emit_object(llvm.parse_assembly(SAMPLE))
    monkeypatch.setattr(link_module.os, "uname", lambda: SimpleNamespace(machine=machine))
    made = link_module._Linker({"sample": read_object("sample", data)})
    made.lay_out()
    made.reserve()
    base = 0x7F12_3456_7000
    made.relocate(base)
    read = made.objects["sample"]
    followed = set()
    for relocation in read.relocations:
        name = read.symbols[relocation.symbol].name
        at = made.sections["sample", relocation.section] + relocation.offset
        found = goal(made.image, made.machine.kinds[relocation.kind], machine, at, base + at)
        if name == "sin" and found is not None:
            assert found == base + made.stubs["sin"]
            assert made.image[found - base :][:8] == made.machine.stub
            assert word(made.image, found - base + 8) == link_module._find_in_process("sin")
            followed.add(name)
        if name == "counter" and made.machine.kinds[relocation.kind].via == "":
            assert word(made.image, at) == base + made.globals["counter"]
            followed.add("pointer")
    assert word(made.image, made.slots["counter"]) == base + made.globals["counter"]
    assert followed == {"sin", "pointer"}


def word(image: bytearray, at: int) -> int:
    return int.from_bytes(image[at : at + 8], "little")


def goal(image: bytearray, kind: object, machine: str, at: int, place: int) -> int | None:
    """Where a call leads, by the processor's manual; None for what is no call."""
    if kind.via != "stub":  # type: ignore[attr-defined]
        return None
    (code,) = struct.unpack_from("<i", image, at)
    if machine == "x86_64":
        return place + 4 + code  # counted from the next instruction
    return place + ((code & 0x3FFFFFF ^ 0x2000000) - 0x2000000) * 4
