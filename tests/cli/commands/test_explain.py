from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

from tests.cli.invoke import fail, succeed, succeed_json


def test_text(mlp_file: Path) -> None:
    text = succeed("explain", mlp_file)
    assert "fuse " in text
    assert "softmax" in text
    assert "vectorize(" in text
    assert "arena" in text


def test_the_least_time_of_each_kernel_here(conv_file: Path) -> None:
    assert "ms at least, by " in succeed("explain", conv_file, "--threads", 1)
    assert "ms at least" not in succeed("explain", conv_file, "--target", "x86-64-v4")
    here = succeed_json("explain", conv_file)["kernels"]
    assert all(k["least_ms"] > 0 and k["bound"] in ("compute", "memory") for k in here)


def test_a_saved_model(mlp_file: Path) -> None:
    succeed("compile", mlp_file)
    assert "softmax" in succeed("explain", "mlp.tw")
    assert succeed_json("explain", "mlp.tw")["inputs"][0]["name"] == "x"
    fail("explain", "mlp.tw", "--html", "r.html", code="explain.saved")


def test_json(conv_file: Path) -> None:
    report = succeed_json("explain", conv_file, "--target", "x86-64-v4")
    assert report["memory"]["overhead"] >= 1
    assert all(k["loops"].startswith("func @") for k in report["kernels"])
    assert any("512" in line for line in report["target"].splitlines())


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)


def test_a_page_that_needs_no_other(conv_file: Path) -> None:
    succeed("explain", conv_file, "--html", "report.html")
    text = Path("report.html").read_text()
    page = _Page()
    page.feed(text)
    kernels = len(succeed_json("explain", conv_file)["kernels"])
    assert page.tags.count("details") == kernels + 1  # and one for the graph
    assert "rect" in page.tags
    assert not re.search(r"(src|href)=|@import|url\(", text)
    fail("explain", conv_file, "--html", "no/folder/r.html", code="file.unwritable")


def test_a_page_of_symbolic_sizes(mlp_file: Path) -> None:
    succeed("explain", mlp_file, "--html", "report.html")
    assert "symbolic sizes" in Path("report.html").read_text()
