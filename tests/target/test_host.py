from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilewright.core.config import override
from tilewright.target.host import VECTOR_UNITS, _ask_llvm, _vector_unit, host


def test_the_host() -> None:
    target = host()
    assert target.cores == len(os.sched_getaffinity(0))
    assert target.lanes(32) * 32 == target.vector_bits
    assert target.l1 <= target.l2
    assert all(f[0] == "+" for f in target.features)
    assert target.architecture in ("x86_64", "aarch64", "arm64")
    assert target.cpu in target.describe()


def test_the_host_is_cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with override(cache=True, cache_dir=tmp_path):
        host.cache_clear()
        first = host()
        assert first == _ask_llvm()
        monkeypatch.setattr("tilewright.target.host._ask_llvm", lambda: pytest.fail("asked again"))
        host.cache_clear()
        assert host() == first
    host.cache_clear()


def test_the_widest_vector_unit_wins() -> None:
    assert _vector_unit({"sse2", "avx", "avx2", "avx512f"}) == (512, 32)
    assert _vector_unit({"sse2", "avx2"}) == (256, 16)
    assert _vector_unit({"neon"}) == (128, 32)
    assert _vector_unit(set()) == (128, 16)
    widths = [bits for _, bits, _ in VECTOR_UNITS[:-1]]
    assert widths == sorted(widths, reverse=True)
