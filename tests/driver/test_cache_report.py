"""Why a compilation is not in the cache, in words."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.models import mlp
from tilewright.core.disk_cache import DiskCache
from tilewright.driver.cache_key import KeyParts, keep_parts, key_parts
from tilewright.driver.cache_report import explain_miss, kept_compilations
from tilewright.driver.options import CompileOptions, make_options


def kept(options: CompileOptions, store: DiskCache) -> KeyParts:
    """Parts of a key beside something that stands for the compiled model."""
    parts = key_parts(mlp("N"), options, store)
    assert parts is not None
    store.put(parts.key(), lambda file: file.write_bytes(b"code"))
    keep_parts(parts, store)
    return parts


def test_each_difference_is_named(tmp_path: Path) -> None:
    store, options = DiskCache(tmp_path), make_options("x86-64-v3")
    assert "no model of this name" in str(explain_miss(mlp("N"), options, store))
    parts = kept(options, store)
    ((path, read),) = kept_compilations(store)
    assert read == parts
    assert path == store.path(parts.key())
    assert explain_miss(mlp("N"), options, store).hit
    for other, text in (
        (make_options("x86-64-v4"), "the target: x86-64-v3 there, x86-64-v4 here"),
        (make_options("x86-64-v3", "bf16"), "precision: f32 there, bf16 here"),
        (make_options("x86-64-v3", dims={"N": 1}), "dims: none there, N=1 here"),
        (make_options("x86-64-v3", disable_passes=["fuse"]), "disabled_passes: none there, fuse"),
        (replace(options, target=make_options("x86-64-v4").target), "the machine, or its"),
    ):
        assert text in str(explain_miss(mlp("N"), other, store))
    changed = explain_miss(mlp("M"), options, store)
    assert changed.differences == ("the content of the model",)


def test_the_nearest_is_compared(tmp_path: Path) -> None:
    store = DiskCache(tmp_path)
    kept(make_options("x86-64-v4", "bf16"), store)
    kept(make_options("x86-64-v3"), store)
    missed = explain_miss(mlp("N"), make_options("x86-64-v3", dims={"N": 4}), store)
    assert missed.differences == ("dims: none there, N=4 here",)


def test_a_source_without_identity(tmp_path: Path) -> None:
    missed = explain_miss(object(), make_options(), DiskCache(tmp_path))
    assert not missed.hit
    assert "no stable identity" in str(missed)
