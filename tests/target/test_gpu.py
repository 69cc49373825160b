from __future__ import annotations

import pytest

from tilewright.core.errors import ConfigError
from tilewright.target.gpu import DEFAULT, NAMED, resolve, target_names


def test_names() -> None:
    assert resolve("cuda") is NAMED[DEFAULT]
    assert resolve("cuda -arch=sm_80").cpu == "sm_80"
    assert all(resolve(name).cpu in NAMED for name in target_names())


@pytest.mark.parametrize("name", ["cuda -arch=sm_1", "cuda -fast=1", "cudax", "native"])
def test_unknown_names(name: str) -> None:
    with pytest.raises(ConfigError, match="no target named"):
        resolve(name)


def test_facts() -> None:
    target = resolve("cuda -arch=sm_90a")
    assert target.capability == (9, 0)
    assert target.architecture == "nvptx64"
    assert target.emits_text
    assert target.warps * target.warp >= target.threads_per_block
    assert target.static_shared <= target.shared
    assert {s.operands for s in target.matrix_shapes} >= {"f16", "bf16", "tf32", "i8", "u8"}
    assert "132 multiprocessors" in target.describe()


def test_launches_that_begin_early() -> None:
    assert resolve("cuda").starts_early
    assert not resolve("cuda -arch=sm_80").starts_early
