"""The commands on models that are compiled in segments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.cli.invoke import fail, succeed, succeed_json
from tests.frontends.onnx.segments.segmented_models import AXES, RESHAPED, SEQUENCE, TEXTS, parsed


@pytest.fixture
def axes() -> str:
    onnx.save(AXES, "axes.onnx")
    np.save("axes.npy", np.array([1]))
    return "axes.onnx"


@pytest.fixture
def sequence() -> str:
    onnx.save(SEQUENCE, "sequence.onnx")
    return "sequence.onnx"


def test_run(axes: str) -> None:
    np.save("x.npy", np.ones((3, 4), np.float32))
    text = succeed("run", axes, "-i", "x=x.npy", "-i", "axes=axes.npy", "--output-dir", "out")
    assert "float32" in text
    np.testing.assert_array_equal(np.load("out/y.npy"), [4, 4, 4])
    drawn = succeed_json(
        "run", axes, "-i", "axes=axes.npy", "--random", "--dim", "n=5", "--dim", "m=2"
    )
    assert drawn["outputs"][0]["shape"] == [5]
    fail("run", axes, "-i", "axes=axes.npy", "--random", code="cli.dim")


def test_texts_and_sequences() -> None:
    onnx.save(TEXTS, "texts.onnx")
    np.save("rows.npy", np.array([2, 0]))
    given = ("-i", "rows=rows.npy", "--random", "--dim", "n=3", "--output-dir", "out")
    rows = succeed_json("run", "texts.onnx", *given)["outputs"]
    assert [r["dtype"] for r in rows] == ["text", "bool"]
    assert np.load("out/picked.npy").dtype.kind == "U"
    model = parsed("""
        g (seq(float[n]) s) => (seq(float[n]) t, float[] joined) {
            t = SequenceInsert (s, first)
            zero = Constant <value = int64 {0}> ()
            first = SequenceAt (s, zero)
            joined = ConcatFromSequence <axis = 0> (t)
        }
    """)
    onnx.save(model, "seq.onnx")
    np.savez("s.npz", np.ones(2, np.float32), np.zeros(2, np.float32))
    rows = succeed_json("run", "seq.onnx", "-i", "s=s.npz", "--output-dir", "out")["outputs"]
    assert (rows[0]["dtype"], rows[0]["shape"]) == ("sequence", [3])
    assert len(np.load("out/t.npz").files) == 3
    np.testing.assert_array_equal(np.load("out/joined.npy"), [1, 1, 0, 0, 1, 1])
    fail("run", "seq.onnx", "--random", code="cli.input")


def test_profile_tells_of_stages_and_of_the_host(sequence: str) -> None:
    text = succeed("profile", sequence, "--dim", "n=3", "--runs", 2, "--threads", 1)
    assert "segment 1 (1 kernel)" in text
    assert "host SplitToSequence" in text
    parts = succeed_json("profile", sequence, "--dim", "n=3", "--runs", 2)["parts"]
    tool = ("profile", sequence, "--dim", "n=3", "--runs", 2, "--trace", "t")
    assert "a trace of a model in segments" in fail(*tool, code="profile.trace")
    assert sum(p["share"] for p in parts) == pytest.approx(1)
    assert "host SplitToSequence" in succeed(
        "run", sequence, "--random", "--dim", "n=3", "--profile"
    )


def test_explain_counts(sequence: str, mlp_file: Path) -> None:
    text = succeed("explain", sequence)
    assert text.startswith("0 segments compiled so far\n5 operators, 3 on the host: ")
    assert "because of SplitToSequence runs on the host" in text
    report = succeed_json("explain", sequence, "--random", "--dim", "n=3")
    assert report["native_segments"] == 2
    assert report["host_operators"]["SequenceLength"] == 1
    assert report["operators"] == 5
    fail("explore", sequence, code="onnx.host")
    assert "1 segment, 0 operators on the host" in succeed("explain", mlp_file)
    assert succeed_json("explain", mlp_file)["host_operators"] == {}


def test_compile_and_run_the_file(axes: str) -> None:
    text = succeed("compile", axes)
    assert text.startswith("axes.tw: a model in segments")
    np.save("x.npy", np.ones((3, 4), np.float32))
    given = ("-i", "x=x.npy", "-i", "axes=axes.npy")
    assert succeed_json("run", "axes.tw", *given, "--threads", 1)["outputs"][0]["shape"] == [3]
    assert "0 segments compiled so far" in succeed("explain", "axes.tw")
    assert succeed_json("explain", "axes.tw")["inputs"][1] == {"name": "axes", "type": "i64[k]"}
    assert succeed_json("compile", axes)["host_operators"] == {}
    message = fail("compile", axes, "--emit", "library", code="export.segmented")
    assert "node ReduceSum" in message
    fail("compile", axes, "--emit", "loops", code="onnx.data-dependent")


def test_bench(sequence: str) -> None:
    quick = ("--rounds", 1, "--seconds", 0.01, "--idle-timeout", 0)
    (row,) = succeed_json("bench", sequence, "--dim", "n=3", *quick)["engines"]
    assert row["min_ms"] > 0


def test_bisect_looks_at_each_stage(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    onnx.save(RESHAPED, "reshaped.onnx")
    np.save("parts.npy", np.array([3, 1]))
    given = ("-i", "parts=parts.npy", "--dim", "n=12")
    report = succeed_json("bisect", "reshaped.onnx", *given)
    assert report["finding"] is None
    assert {name.partition(",")[0] for name in report["outputs"]} == {"segment 1", "segment 2"}
