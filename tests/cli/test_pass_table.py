from __future__ import annotations

from pathlib import Path

from tests.cli.invoke import fail, succeed, succeed_json


def test_the_effect_of_each_pass(conv_file: Path) -> None:
    text = succeed("explain", conv_file, "--passes")
    assert text.splitlines()[0].split("  ")[0] == "pass"
    assert "estimated ms" in text
    assert "changed nothing: " in text
    report = succeed_json("explain", conv_file, "--passes", "--disable-pass", "choose-layouts")
    names = [row["name"] for row in report["passes"]]
    assert names[0] == "import"
    assert names[-1] == "fuse"
    assert "choose_layouts" not in (*names, *report["unchanged"])
    assert all(row["estimated_s"] > 0 and row["bytes"] > 0 for row in report["passes"])


def test_a_foreign_processor_has_no_estimates(conv_file: Path) -> None:
    report = succeed_json("explain", conv_file, "--passes", "--target", "neoverse-n1")
    assert {row["estimated_s"] for row in report["passes"]} == {None}
    fail(
        *("explain", conv_file, "--passes", "--measure", "--target", "neoverse-n1"),
        code="explain.measure",
    )


def test_measured_times(mlp_file: Path) -> None:
    report = succeed_json(
        *("explain", mlp_file, "--passes", "--measure", "--dim", "N=2", "--threads", 1)
    )
    rows = [row for row in report["passes"] if "disabled_s" in row]
    assert all(row["disabled_s"] > 0 and row["enabled_s"] > 0 for row in rows)
    assert not {"fuse", "dce", "import"} & {row["name"] for row in rows}


def test_what_cannot_be_explained(mlp_file: Path) -> None:
    succeed("compile", mlp_file)
    fail("explain", "mlp.tw", "--passes", code="explain.saved")
    fail("run", "mlp.tw", "--disable-pass", "cse", "--random", code="pass.saved")
    fail("explain", mlp_file, "--passes", "--disable-pass", "fuse", code="pass.required")
