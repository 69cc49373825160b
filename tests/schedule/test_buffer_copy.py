from __future__ import annotations

from dataclasses import replace

from tests.schedule.programs import dense, matmul, refused
from tilewright.ir.loop.text import print_stmt
from tilewright.ir.loop.walk import buffers
from tilewright.schedule.buffer_copy import check_cache, copy_nest
from tilewright.schedule.tree import loop_spine, replaced, target_loop


def test_copy_nest() -> None:
    source = buffers(dense())["bias"]
    nest = copy_nest("c", source, replace(source, name="t"))
    assert print_stmt(nest) == (
        "for c.ax0 in serial(N) {\n"
        '  block "c" [v0: S(N) = c.ax0] reads bias[v0] writes t[v0]\n'
        "    { t[v0] = bias[v0] }\n"
        "}"
    )


def test_names_and_scopes() -> None:
    func = dense()
    check_cache(func, "new", "new", "local", 2)
    refused("cache.scope", check_cache, func, "new", "new", "nowhere", 2)
    refused("schedule.name-taken", check_cache, func, "mm", "new", "local", 2)
    refused("schedule.name-taken", check_cache, func, "new", "mm", "local", 2)
    refused("schedule.name-taken", check_cache, _with_loop("new.ax0"), "new", "new", "local", 1)


def _with_loop(name: str):
    func = matmul()
    spine = loop_spine(func, "y.i0")
    renamed = replace(target_loop(spine), name=name)
    return replaced(func, spine, renamed)
