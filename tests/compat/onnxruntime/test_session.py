"""Sessions behave as ONNX Runtime's: every call is made on both."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tilewright.compat.onnxruntime as ours
from tests.compat.onnxruntime.both import affine, assert_alike, model, outcome, tensor
from tests.for_each import for_each
from tilewright.compat.onnxruntime.providers import CPU

BYTES = affine().SerializeToString()
X = np.arange(6, dtype=np.float32).reshape(2, 3)


def _face(engine: ModuleType, data: bytes = BYTES, **options: Any) -> Any:
    session = engine.InferenceSession(data, **options)
    args = [*session.get_inputs(), *session.get_outputs(), *session.get_overridable_initializers()]
    return [(a.name, a.shape, a.type, str(a)) for a in args]


def _meta(engine: ModuleType) -> Any:
    meta = engine.InferenceSession(BYTES).get_modelmeta()
    return (meta.producer_name, meta.graph_name, meta.version, meta.custom_metadata_map)


def test_faces_and_metadata() -> None:
    assert_alike(_face)
    assert_alike(_meta)


@for_each(
    ("names", "feed"),
    [
        (None, {"x": X, "y": X}),
        ([], {"x": X, "y": X}),
        (["o"], {"x": X, "y": X}),
        (["o", "z", "o"], {"y": X, "x": X}),
        (["o"], {"x": X, "y": X, "w": np.zeros(3, np.float32)}),
        (["o"], {"x": X.tolist(), "y": X}),
        (["o"], {"x": [[1, 2, 3]], "y": X[:1]}),
        (["o"], {"x": np.ones((3, 2), np.float32).T, "y": X}),
        (["o"], {"x": X[:0], "y": X[:0]}),
        (["o"], {"x": X[:1], "y": X}),  # equally named sizes may broadcast
        (["q"], {"x": X, "y": X}),
        (None, {"x": X}),
        (None, {1: X, "y": X}),
        (None, {"x": X, "y": X, "q": X}),
        (None, {"x": X.astype(np.float64), "y": X}),
        (None, {"x": X.astype(np.int64), "y": X}),
        (None, {"x": np.array([["a"]]), "y": X}),
        (None, {"x": X[0], "y": X}),
        (None, {"x": np.ones((2, 4), np.float32), "y": X}),
        (None, {"x": np.ones((5, 3), np.float32), "y": X}),
        (None, {"x": 1.0, "y": X}),
        (None, {"x": None, "y": X}),
        (None, [X, X]),
        ("o", {"x": X, "y": X}),
    ],
)
def test_run(names: Any, feed: Any) -> None:
    assert_alike(lambda engine: engine.InferenceSession(BYTES).run(names, feed))


@for_each(
    "feed",
    [
        {"x": X},
        {"x": X, "y": X, "q": X},
        {"x": X.astype(np.float64), "y": X},
        {"x": X[0], "y": X},
        {"x": np.ones((2, 4), np.float32), "y": X},
    ],
)
def test_messages_of_wrong_feeds(feed: Any) -> None:
    def call(engine: ModuleType) -> Any:
        return engine.InferenceSession(BYTES).run(None, feed)

    import onnxruntime

    assert outcome(call, ours) == outcome(call, onnxruntime)


def test_a_byte_order_of_another_machine_is_read_rightly() -> None:
    # ONNX Runtime takes the bytes as they are, which is hardly meant.
    outputs = ours.InferenceSession(BYTES).run(["z"], {"x": X.astype(">f4"), "y": X})
    np.testing.assert_array_equal(outputs[0], X + X)


def test_run_options() -> None:
    def run(engine: ModuleType, **values: Any) -> Any:
        options = engine.RunOptions()
        for name, value in values.items():
            setattr(options, name, value)
        return engine.InferenceSession(BYTES).run(["o"], {"x": X, "y": X}, options)

    assert_alike(run)
    assert_alike(lambda engine: run(engine, terminate=True))
    session = {"x": X, "y": X}
    assert_alike(lambda engine: engine.InferenceSession(BYTES).run(["o"], session, 3))


@pytest.mark.parametrize(
    "make",
    [
        lambda engine, folder: engine.InferenceSession(folder / "none.onnx"),
        lambda engine, folder: engine.InferenceSession(str(folder / "broken.onnx")),
        lambda engine, folder: engine.InferenceSession(str(folder / "empty.onnx")),
        lambda engine, folder: engine.InferenceSession(str(folder / "cut.onnx")),
        lambda engine, folder: engine.InferenceSession(str(folder)),
        lambda engine, folder: engine.InferenceSession(b"hello world"),
        lambda engine, folder: engine.InferenceSession(b""),
        lambda engine, folder: engine.InferenceSession(BYTES[: len(BYTES) // 2]),
        lambda engine, folder: engine.InferenceSession(5),
        lambda engine, folder: engine.InferenceSession(None),
        lambda engine, folder: engine.InferenceSession(bytearray(BYTES)),
        lambda engine, folder: engine.InferenceSession(BYTES, sess_options=5),
        lambda engine, folder: engine.InferenceSession(folder / "good.onnx").run(
            None, {"x": X, "y": X}
        ),
    ],
)
def test_opening(make: Callable[[ModuleType, Path], Any], tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"hello world, this is no model")
    (tmp_path / "empty.onnx").write_bytes(b"")
    (tmp_path / "cut.onnx").write_bytes(BYTES[: len(BYTES) // 2])
    (tmp_path / "good.onnx").write_bytes(BYTES)
    assert_alike(lambda engine: make(engine, tmp_path))


@for_each(
    ("op", "domain", "shape"),
    [("Frobnicate", "", [2]), ("Frobnicate", "elsewhere", [2]), ("MatMul", "", [2, 3])],
)
def test_invalid_models(op: str, domain: str, shape: list[int]) -> None:
    inputs = ["x", "x"] if op == "MatMul" else ["x"]
    wrong = model(
        [helper.make_node(op, inputs, ["z"], domain=domain)],
        [tensor("x", shape)],
        [tensor("z", shape)],
    ).SerializeToString()
    assert_alike(lambda engine: engine.InferenceSession(wrong))


def test_outputs_must_have_the_elements_that_are_declared() -> None:
    wrong = model(
        [helper.make_node("Relu", ["x"], ["z"])],
        [tensor("x", ["a"])],
        [tensor("z", ["a"], TensorProto.INT64)],
    ).SerializeToString()
    assert_alike(lambda engine: engine.InferenceSession(wrong))


@pytest.mark.parametrize(
    "providers",
    [None, [], [CPU], (CPU,), [(CPU, {"a": 1})], ["FooExecutionProvider"], [5], CPU],
)
@pytest.mark.filterwarnings("ignore:Specified provider", "ignore:Duplicate provider")
def test_providers(providers: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def chosen(engine: ModuleType) -> Any:
        session = engine.InferenceSession(BYTES, providers=providers)
        return session.get_providers(), session.get_provider_options()

    printed = []

    def call(engine: ModuleType) -> Any:
        found = chosen(engine)
        printed.append(capsys.readouterr().out)
        return found

    assert_alike(call)
    assert printed[0] == printed[1]


def test_providers_without_fallback() -> None:
    session = ours.InferenceSession(BYTES)
    session.disable_fallback()
    with pytest.warns(UserWarning, match="Foo"), pytest.raises(ValueError, match="Foo"):
        session.set_providers(["FooExecutionProvider"])
    session.enable_fallback()
    with pytest.warns(UserWarning, match="CUDA"):
        session.set_providers(["CUDAExecutionProvider", CPU])
    assert session.get_providers() == [CPU]


def test_sizes_that_are_given() -> None:
    def options(engine: ModuleType) -> Any:
        found = engine.SessionOptions()
        found.add_free_dimension_override_by_name("N", 4)
        found.add_free_dimension_override_by_name("elsewhere", 7)
        return found

    assert_alike(lambda engine: _face(engine, sess_options=options(engine)))
    feed = {"x": X, "y": X}
    assert_alike(lambda e: e.InferenceSession(BYTES, options(e)).run(None, feed))


def test_initializers_that_are_replaced() -> None:
    plain = affine()
    del plain.graph.input[2]
    values = {engine: engine.OrtValue.ortvalue_from_numpy(np.zeros(3, np.float32)) for engine in
              (ours, __import__("onnxruntime"))}  # fmt: skip

    def run(engine: ModuleType) -> Any:
        options = engine.SessionOptions()
        options.add_initializer("w", values[engine])
        session = engine.InferenceSession(plain.SerializeToString(), options)
        return session.run(None, {"x": X, "y": X})

    assert_alike(run)


def test_the_optimised_model_can_be_opened(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(BYTES)
    for source in (BYTES, str(tmp_path / "m.onnx")):
        options = ours.SessionOptions()
        options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
        expected = ours.InferenceSession(source, options).run(None, {"x": X, "y": X})
        again = ours.InferenceSession(tmp_path / "optimised.onnx").run(None, {"x": X, "y": X})
        np.testing.assert_array_equal(expected, again)


def test_profiling(tmp_path: Path) -> None:
    options = ours.SessionOptions()
    options.enable_profiling = True
    options.profile_file_prefix = str(tmp_path / "profile")
    session = ours.InferenceSession(BYTES, options)
    session.run(None, {"x": X, "y": X})
    assert session.get_profiling_start_time_ns() > 0
    events = json.loads(Path(session.end_profiling()).read_text())
    assert [event["name"] for event in events] == ["model_loading", "model_run"]
    assert ours.InferenceSession(BYTES).end_profiling() == ""


def test_run_async() -> None:
    def call(engine: ModuleType) -> Any:
        done = threading.Event()
        found: list[Any] = []

        def callback(*given: Any) -> None:
            found.append(given)
            done.set()

        engine.InferenceSession(BYTES).run_async(["z"], {"x": X, "y": X}, callback, "data")
        assert done.wait(20)
        return found

    assert_alike(call)


def test_run_async_tells_what_is_wrong() -> None:
    done = threading.Event()
    told: list[str] = []

    def callback(outputs: Any, data: Any, failure: str) -> None:
        told.append(failure)
        done.set()

    ours.InferenceSession(BYTES).run_async(None, {"x": X[0], "y": X}, callback, None)
    assert done.wait(20)
    assert "Invalid rank" in told[0]


def test_run_with_ort_values() -> None:
    def call(engine: ModuleType, names: Any, feed: dict[str, np.ndarray]) -> Any:
        session = engine.InferenceSession(BYTES)
        values = {name: engine.OrtValue.ortvalue_from_numpy(a) for name, a in feed.items()}
        found = session.run_with_ort_values(names, values)
        return [(v.numpy(), v.data_type()) for v in found]

    assert_alike(lambda engine: call(engine, None, {"x": X, "y": X}))
    assert_alike(lambda engine: call(engine, ["o"], {"x": X, "y": X}))
    assert_alike(lambda engine: call(engine, ["o"], {"x": X}))
    feed = {"x": X, "y": X}
    assert_alike(lambda engine: engine.InferenceSession(BYTES).run_with_ort_values(None, feed))


def test_threads() -> None:
    options = ours.SessionOptions()
    options.intra_op_num_threads = 1
    session = ours.InferenceSession(BYTES, options)
    assert session._engine.direct.threads == 1  # type: ignore[union-attr]
    assert session.get_session_options() is options


def test_log_severity() -> None:
    def call(engine: ModuleType) -> Any:
        options = engine.SessionOptions()
        options.log_severity_level = 9
        return engine.InferenceSession(BYTES, options)

    assert_alike(call)


def test_results_are_the_callers_own() -> None:
    session = ours.InferenceSession(BYTES)
    first = session.run(["z"], {"x": X, "y": X})[0]
    kept = first.copy()
    for _ in range(5):
        session.run(["z"], {"x": X + 1, "y": X})
    np.testing.assert_array_equal(first, kept)
    assert first.flags.writeable


def test_a_model_of_an_old_format_has_no_overridable_initializers() -> None:
    old = onnx.ModelProto()
    old.CopyFrom(affine())
    old.ir_version = 3
    assert_alike(lambda engine: _face(engine, old.SerializeToString()))
