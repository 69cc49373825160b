from __future__ import annotations

import llvmlite.binding as llvm

from tilewright.codegen.threadpool import threadpool_ir
from tilewright.codegen.threadpool_workers import MAILBOX, WORKER, WORKERS


def defined(text: str) -> set[str]:
    return {
        line.split("@")[1].split("(")[0] for line in text.splitlines() if line.startswith("define")
    }


def test_everything_is_private_and_used() -> None:
    module = llvm.parse_assembly(threadpool_ir("aarch64-unknown-linux-gnu"))
    text = str(module)
    for name in defined(MAILBOX + WORKER + WORKERS):
        assert module.get_function(name).linkage.name == "internal"
        assert text.count(f"@{name}(") + text.count(f"@{name},") >= 2


def test_a_mailbox_is_two_cache_lines() -> None:
    module = llvm.parse_assembly(threadpool_ir("aarch64-unknown-linux-gnu"))
    data = llvm.create_target_data("e-i64:64-n32:64-S128")
    slot, pool = module.get_struct_type("tw.slot"), module.get_struct_type("tw.pool")
    assert data.get_abi_size(slot) == 128
    assert data.get_element_offset(slot, 8) == 64
    assert data.get_element_offset(pool, 4) == 128
