from __future__ import annotations

from pathlib import Path

from tests.cli.invoke import fail, succeed, succeed_json
from tilewright.ir.graph.parse import parse_graph
from tilewright.ops.attrs import make_attrs

TEXT = """\
graph @small(x: f32[N, 4], zero: f32[] = const 0.0) {
  %0: f32[N, 4] = identity(%x)
  %1: f32[N, 4] = exp(%0)
  %2: f32[N, 4] = exp(%x)
  %y: f32[N, 4] = add(%1, %2)
  return %y
}
"""


def _save(text: str = TEXT) -> Path:
    Path("small.graph").write_text(text)
    return Path("small.graph")


def test_chosen_passes() -> None:
    assert succeed("opt", _save(), "-p", "") == TEXT
    text = succeed("opt", _save(), "-p", "eliminate-noop,cse,dce")
    assert text == (
        "graph @small(x: f32[N, 4]) {\n"
        "  %1: f32[N, 4] = exp(%x)\n"
        "  %y: f32[N, 4] = add(%1, %1)\n"
        "  return %y\n"
        "}\n"
    )


def test_let_form() -> None:
    text = succeed("opt", _save(), "-p", "eliminate-noop,cse,dce", "--form", "let")
    assert text == (
        "graph @small(x: f32[N, 4]) =\n"
        "  let %1: f32[N, 4] = exp(%x) in\n"
        "  let %y: f32[N, 4] = add(%1, %1) in\n"
        "  (%y)\n"
    )
    assert succeed("opt", _save(text), "-p", "", "--form", "let") == text
    assert "let %y" in succeed("compile", _save(text), "--emit", "graph", "--form", "let")


def test_sizes() -> None:
    assert "%y: f32[3, 4]" in succeed("opt", _save(), "-p", "", "--dim", "N=3")


def test_print_after() -> None:
    text = succeed("opt", _save(), "-p", "eliminate_noop,fold_constants", "--print-after", "all")
    assert text.count("graph @small") == 2
    assert "# after eliminate_noop\n" in text
    assert "# after fold_constants (unchanged)\n" in text
    text = succeed("opt", _save(), "-p", "eliminate_noop,cse", "--print-after", "eliminate-noop")
    assert text.count("graph @small") == 2
    assert text.count("# after") == 1


def test_the_whole_pipeline_on_a_model(mlp_file: Path) -> None:
    report = succeed_json("opt", mlp_file, "-o", "out.graph", "--print-after", "fuse")
    assert report["passes"][-1]["name"] == "fuse"
    assert "fused(" in report["after"][0]["graph"]
    assert report["files"] == ["out.graph", "out.npz"]
    assert "fused(" in Path("out.graph").read_text()


def test_a_graph_that_is_wrong() -> None:
    assert "cse" in fail("opt", _save(), "-p", "csee", code="pass.unknown")
    fail("opt", _save(), "--print-after", "csee", code="pass.unknown")
    assert "small.graph:3:" in fail(
        "opt", _save(TEXT.replace("exp(%0)", "exp(0)")), code="parse.syntax"
    )
    fail("opt", _save(TEXT.replace("exp", "expp", 1)), code="op.unknown")
    fail("opt", _save(TEXT.replace("exp(%0)", "exp(%9)")), code="graph.undefined")
    fail("opt", _save(TEXT.replace("%1: f32[N, 4]", "%1: f32[4, N]")), code="graph.inferred")
    Path("small.graph").write_bytes(b"\xff\xfe")
    fail("opt", "small.graph", code="graph.file")


def test_texts_parse(mlp_file: Path) -> None:
    import numpy as np

    succeed("opt", mlp_file, "-p", "", "-o", "out.graph")
    constants = dict(np.load("out.npz"))
    graph = parse_graph(Path("out.graph").read_text(), make_attrs, constants)
    assert [v.name for v in graph.inputs] == ["x"]
