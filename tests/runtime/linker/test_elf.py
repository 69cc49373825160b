from __future__ import annotations

import struct
from contextlib import suppress

import llvmlite.binding as llvm
import pytest

from tests.for_each import for_each
from tests.runtime.fake_model import compile_ir
from tilewright.core.errors import ExecutionError
from tilewright.runtime.linker.elf import read_object

SAMPLE = """
@counter = global i32 7
@room = internal global [100 x i8] zeroinitializer
@table = internal constant [3 x i32] [i32 1, i32 2, i32 3]
@pointer = global ptr @counter
declare double @sin(double)
define double @next(i64 %i) {
  %at = getelementptr i32, ptr @table, i64 %i
  %v = load i32, ptr %at
  %old = load i32, ptr @counter
  %new = add i32 %old, %v
  store i32 %new, ptr @counter
  store i8 1, ptr @room
  %x = sitofp i32 %new to double
  %y = call double @sin(double %x)
  ret double %y
}
define weak void @maybe() { ret void }
"""


def test_sections_and_symbols() -> None:
    read = read_object("sample", compile_ir(SAMPLE))
    assert read.machine in (62, 183)
    kinds = {section.name: section for section in read.sections.values()}
    assert kinds[".text"].data
    assert not kinds[".text"].writable
    assert kinds[".data"].writable
    room = next(s for s in read.sections.values() if s.name.startswith(".bss"))
    assert room.data is None
    assert room.size >= 100
    assert ".eh_frame" not in kinds
    symbols = {s.name: s for s in read.symbols}
    assert symbols["sin"].section is None
    assert not symbols["next"].is_local
    assert symbols["maybe"].is_weak
    assert all(r.section in read.sections for r in read.relocations)
    assert {read.symbols[r.symbol].name for r in read.relocations} >= {"sin", "counter"}


@for_each(
    ("text", "said"),
    [
        ("@x = thread_local global i32 1", "has a section .tdata"),
        ("@x = common global i32 0", "leaves the place of x open"),
        (
            "@llvm.global_ctors = appending global [1 x { i32, ptr, ptr }] "
            "[{ i32, ptr, ptr } { i32 1, ptr @f, ptr null }] define void @f() { ret void }",
            "has a section (.ctors|of type 0xe)",
        ),
        (
            "@f = ifunc void (), ptr @g  define ptr @g() { ret ptr null }",
            "has a symbol f of an unknown kind",
        ),
        ("$f = comdat any  define void @f() comdat { ret void }", "has a section of type 0x11"),
    ],
    ids=["thread-local", "common", "constructor", "ifunc", "comdat"],
)
def test_what_is_not_known_is_refused(text: str, said: str) -> None:
    with pytest.raises(ExecutionError, match=said) as caught:
        read_object("strange", compile_ir(text))
    assert caught.value.code == "native.link"


def test_other_files_are_refused() -> None:
    data = compile_ir(SAMPLE)
    for bad in (b"", b"\x7fELF", b"#!/bin/sh\n" * 20, data[:4] + b"\x01" + data[5:]):
        with pytest.raises(ExecutionError, match="is not an object file"):
            read_object("bad", bad)
    library = bytearray(data)
    struct.pack_into("<H", library, 16, 3)
    with pytest.raises(ExecutionError, match="not a plain object file"):
        read_object("library", bytes(library))


def test_a_damaged_file_is_refused_or_read_but_never_more() -> None:
    data = compile_ir(SAMPLE)
    for end in range(len(data) - 1):
        with pytest.raises(ExecutionError):
            read_object("cut", data[:end])
    for place in range(16, len(data)):
        changed = bytearray(data)
        changed[place] ^= 0xFF
        with suppress(ExecutionError):
            read_object("changed", bytes(changed))


def test_both_processors_are_read() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    for triple, machine in (("x86_64-linux-gnu", 62), ("aarch64-linux-gnu", 183)):
        target = llvm.Target.from_triple(triple).create_target_machine(
            reloc="pic", codemodel="small"
        )
        read = read_object("sample", target.emit_object(llvm.parse_assembly(SAMPLE)))
        assert read.machine == machine
