from __future__ import annotations

import json
from pathlib import Path

from tests.cli.invoke import fail, invoke, succeed


def test_a_page_and_a_trace(conv_file: Path) -> None:
    text = succeed("explore", conv_file, "--trace", "trace.json", "--target", "x86-64-v3")
    assert text.split() == ["conv.html", "trace.json"] or Path("conv.html").exists()
    assert (
        "<title>conv.onnx · Tilewright explorer</title>"
        in conv_file.with_suffix(".html").read_text()
    )
    events = json.loads(Path("trace.json").read_text())["traceEvents"]
    assert [e["args"]["step"] for e in events] == list(range(len(events)))


def test_what_cannot_be_explored(mlp_file: Path) -> None:
    succeed("compile", mlp_file)
    fail("explore", "mlp.tw", code="explore.saved")
    fail("explore", mlp_file, "-o", "no/folder/page.html", code="file.unwritable")
    assert invoke("explore", mlp_file, "--port", 70000).exit_code == 2
