from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from tests.for_each import for_each
from tilewright.core.errors import ExecutionError
from tilewright.runtime.cpu import host_features as host_features_module
from tilewright.runtime.cpu.host_features import check_target, host_features, missing_features

HERE = llvm.get_default_triple()


def test_this_machine_fits_itself() -> None:
    features = [f"+{name}" for name in host_features()]
    check_target({"triple": HERE, "cpu": llvm.get_host_cpu_name(), "features": features})


def test_what_llvm_tells_is_known() -> None:
    told = {name for name, present in llvm.get_host_cpu_features().items() if present}
    assert told <= host_features()


def test_linux_names_are_translated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        host_features_module, "linux_flags", lambda: ("asimddp", "i8mm", "pni", "evtstrm")
    )
    host_features.cache_clear()
    try:
        assert {"dotprod", "i8mm", "sse3"} <= host_features()
    finally:
        host_features.cache_clear()


def test_missing_features_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {"avx2": True, "avx512f": False, "amx-tile": False}
    monkeypatch.setattr(host_features_module, "_llvm_features", lambda: told)
    monkeypatch.setattr(host_features_module, "linux_flags", lambda: ("avx2",))
    monkeypatch.setattr(host_features_module, "host_features", lambda: frozenset({"avx2"}))
    wanted = ["+avx2", "+avx512f", "-sse4a", "+amx-tile", "+v8.2a"]
    assert missing_features(wanted) == ["amx-tile", "avx512f"]
    with pytest.raises(ExecutionError, match=r"sapphirerapids.*amx-tile, avx512f") as caught:
        check_target({"triple": HERE, "cpu": "sapphirerapids", "features": wanted})
    assert caught.value.code == "native.features"


def test_what_linux_confirms_needs_no_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        host_features_module, "_llvm_features", lambda: pytest.fail("LLVM was asked")
    )
    monkeypatch.setattr(
        host_features_module, "linux_flags", lambda: ("avx2", "sse4_2", "lm", "asimd")
    )
    assert missing_features(["+avx2", "+sse4.2", "+crc32", "+64bit", "-avx512f", "+neon"]) == []


def test_this_machine_is_confirmed_by_linux(monkeypatch: pytest.MonkeyPatch) -> None:
    told = {name for name, present in llvm.get_host_cpu_features().items() if present}
    monkeypatch.setattr(
        host_features_module, "_llvm_features", lambda: pytest.fail(f"LLVM was asked of {told}")
    )
    assert missing_features(f"+{name}" for name in told) == []


@for_each("triple", ["riscv64-unknown-linux-gnu", HERE.replace("linux", "windows")])
def test_foreign_platform(triple: str) -> None:
    with pytest.raises(ExecutionError, match="compiled for") as caught:
        check_target({"triple": triple, "cpu": "", "features": []})
    assert caught.value.code == "native.platform"


def test_vendor_and_environment_do_not_matter() -> None:
    arch = HERE.partition("-")[0]
    check_target({"triple": f"{arch}-pc-linux-musl", "features": []})
