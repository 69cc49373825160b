from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tilewright.codegen.objects.compile import compile_object, compiled_modules
from tilewright.core.config import override
from tilewright.driver.artifact import runtime_objects
from tilewright.driver.artifact.entry_point import emit_support
from tilewright.driver.artifact.runtime_objects import support_objects
from tilewright.target.host import host
from tilewright.target.registry import resolve_target


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """An empty cache, and a process that remembers nothing."""
    runtime_objects._kept.cache_clear()
    with override(cache_dir=tmp_path / "cache"):
        yield tmp_path / "cache"


def _compilations() -> int:
    """How many modules are compiled when a process asks that remembers nothing."""
    runtime_objects._kept.cache_clear()
    before = compiled_modules()
    objects = support_objects(host())
    assert objects == _EXPECTED
    assert list(objects) == list(_EXPECTED)
    return compiled_modules() - before


_EXPECTED = {
    name: compile_object(text, host(), whole=True) for name, text in emit_support(host()).items()
}


def test_they_are_compiled_once(folder: Path) -> None:
    assert _compilations() == len(_EXPECTED)
    assert _compilations() == 0
    before = compiled_modules()
    support_objects(host())["mine"] = b""
    assert support_objects(host()) == _EXPECTED
    assert compiled_modules() == before


def test_a_damaged_file_is_made_again(folder: Path) -> None:
    _compilations()
    (kept,) = (path for path in folder.rglob("objects/*/*") if path.is_file())
    for damage in (b"", kept.read_bytes()[:-9], kept.read_bytes().replace(b"tw_", b"tv_")):
        kept.write_bytes(damage)
        assert _compilations() == len(_EXPECTED)
        assert _compilations() == 0


def test_a_cache_that_cannot_be_written_or_is_off(folder: Path) -> None:
    folder.write_text("no folder")
    assert _compilations() == len(_EXPECTED)
    with override(cache=False):
        assert _compilations() == len(_EXPECTED)


def test_machines_do_not_share_them(folder: Path) -> None:
    names = "x86-64-v3", "x86-64-v4", "aarch64", "cuda"
    small, large, other, gpu = (support_objects(resolve_target(name)) for name in names)
    assert small.keys() == large.keys() == other.keys()
    assert small != large != other
    assert gpu == {}
