from __future__ import annotations

from pathlib import Path

from tests.cli.invoke import fail, succeed, succeed_json
from tests.for_each import for_each
from tilewright.core.config import override


def test_what_is_kept_and_why_not(mlp_file: Path, tmp_path: Path) -> None:
    with override(cache_dir=tmp_path / "cache"):
        assert succeed_json("cache", "list")["models"] == []
        assert "no model of this name" in succeed("cache", "why-miss", mlp_file)
        succeed("compile", mlp_file, "-o", "m.tw", "--dim", "N=2")
        (row,) = succeed_json("cache", "list")["models"]
        assert (row["model"], row["dims"], row["target"]) == ("mlp.onnx", {"N": 2}, "native")
        text = succeed("cache", "list")
        assert "N=2" in text
        assert row["key"][:12] in text
        assert succeed_json("cache", "why-miss", mlp_file, "--dim", "N=2")["hit"]
        missed = succeed("cache", "why-miss", mlp_file, "--dim", "N=3", "--checks", "off")
        assert "dims: N=2 there, N=3 here; checks: True there, False here" in missed
        cleared = succeed_json("cache", "clear")
        assert cleared["files"] > 1
        assert not succeed_json("cache", "why-miss", mlp_file, "--dim", "N=2")["hit"]
        assert succeed_json("cache", "list")["models"] == []
        assert "removed" in succeed("cache", "clear")


@for_each("command", ["list", "clear"])
def test_a_cache_that_is_off(command: str) -> None:
    with override(cache=False):
        assert "TW_CACHE=on" in fail("cache", command, code="cache.off")
