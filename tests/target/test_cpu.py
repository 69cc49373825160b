from __future__ import annotations

import os
from pathlib import Path

import pytest

from tilewright.core.config import override
from tilewright.core.errors import ConfigError
from tilewright.target.cpu import (
    NAMED,
    VECTOR_UNITS,
    _ask_llvm,
    _vector_unit,
    host,
    resolve,
    target_names,
)


def test_native_is_this_machine() -> None:
    target = resolve("native")
    assert target is host()
    assert target.cores == len(os.sched_getaffinity(0))
    assert target.lanes(32) * 32 == target.vector_bits
    assert target.l1 <= target.l2
    assert all(f[0] == "+" for f in target.features)
    assert target.architecture in ("x86_64", "aarch64", "arm64")
    assert target.cpu in target.describe()


def test_this_machine_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with override(cache=True, cache_dir=tmp_path):
        host.cache_clear()
        first = host()
        assert first == _ask_llvm()
        monkeypatch.setattr("tilewright.target.cpu._ask_llvm", lambda: pytest.fail("asked again"))
        host.cache_clear()
        assert host() == first
    host.cache_clear()


@pytest.mark.parametrize("name", NAMED)
def test_named_targets(name: str) -> None:
    target = resolve(name)
    assert name in target_names()
    assert target.lanes(64) >= 2
    assert target.lanes(10_000) == 1
    arm = name in ("aarch64", "neoverse-v1")
    assert target.architecture == ("aarch64" if arm else "x86_64")


def test_features_say_all_that_the_code_may_use() -> None:
    levels = [set(NAMED[f"x86-64-v{n}"].features) for n in (2, 3, 4)]
    assert levels[0] < levels[1] < levels[2]
    for target in NAMED.values():
        names = {f.removeprefix("+") for f in target.features}
        assert _vector_unit(names | {"sse2"})[0] == target.vector_bits or "neon" in names


def test_an_unknown_name_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"target.unknown.*z80") as error:
        resolve("z80")
    assert "x86-64-v3" in error.value.help


def test_the_widest_vector_unit_wins() -> None:
    assert _vector_unit({"sse2", "avx", "avx2", "avx512f"}) == (512, 32)
    assert _vector_unit({"sse2", "avx2"}) == (256, 16)
    assert _vector_unit({"neon"}) == (128, 32)
    assert _vector_unit(set()) == (128, 16)
    widths = [bits for _, bits, _ in VECTOR_UNITS[:-1]]
    assert widths == sorted(widths, reverse=True)


@pytest.mark.parametrize(
    ("name", "products", "rounds"),
    [
        ("sapphirerapids", "tiles", True),
        ("neoverse-v1", "pairs", True),
        ("x86-64-v4", "", False),
        ("aarch64", "", False),
    ],
)
def test_what_a_machine_does_with_bf16(name: str, products: str, rounds: bool) -> None:
    target = resolve(name)
    assert (target.bf16_products, target.rounds_to_bf16) == (products, rounds)
