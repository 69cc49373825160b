from __future__ import annotations

from pathlib import Path

from tilewright.core.host.cache_sizes import cache_sizes


def test_cache_sizes_as_the_kernel_reports_them(tmp_path: Path) -> None:
    rows = [("Data", 1, "48K"), ("Instruction", 1, "32K"), ("Unified", 2, "2048K")]
    for number, (kind, level, size) in enumerate(rows):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        (folder / "type").write_text(f"{kind}\n")
        (folder / "level").write_text(f"{level}\n")
        (folder / "size").write_text(f"{size}\n")
    (tmp_path / "index9").mkdir()  # says nothing
    assert cache_sizes(tmp_path) == {1: 48 * 1024, 2: 2048 * 1024}
    assert cache_sizes(tmp_path / "missing") == {}
