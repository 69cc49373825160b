from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm

from tilewright.driver.trim_memory import _code_pages, release_memory


def resident(name: str) -> int:
    """The kilobytes of the executable pages of a file that are in memory."""
    total, counted = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        words = line.split()
        if "-" in words[0]:
            counted = name in words[-1] and words[1].startswith("r-x")
        elif words[0] == "Rss:" and counted:
            total += int(words[1])
    return total


def test_llvm_leaves_memory_and_comes_back() -> None:
    text = "define i32 @f(i32 %x) { %y = add i32 %x, 1 ret i32 %y }"
    llvm.parse_assembly(text).verify()
    before = resident("libllvmlite")
    release_memory()
    assert resident("libllvmlite") < before / 4
    assert "@f" in str(llvm.parse_assembly(text))


def test_only_code_is_touched(tmp_path: Path) -> None:
    maps = tmp_path / "maps"
    maps.write_text(
        "1000-2000 r-xp 00000000 fe:00 1 /lib/libllvmlite.so\n"
        "2000-3000 r--p 00000000 fe:00 1 /lib/libllvmlite.so\n"
        "3000-4000 rw-p 00000000 fe:00 1 /lib/libllvmlite.so\n"
        "5000-6000 r-xp 00000000 fe:00 1 /lib/libc.so\n"
        "7000-8000 rw-p 00000000 00:00 0\n"
        "a000-c000 r-xp 00000000 fe:00 1 /a b/libllvmlite.so\n"
    )
    assert list(_code_pages(maps)) == [(0x1000, 0x2000), (0xA000, 0xC000)]
    assert list(_code_pages(tmp_path / "absent")) == []
