from __future__ import annotations

import importlib
import json
import logging
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
import pytest

from tests.models import mlp, reference, save
from tilewright.core.config import override
from tilewright.core.errors import FrontendError, UnsupportedError
from tilewright.driver import compile_in_subprocess as subprocess_module
from tilewright.driver.compile_graph import compile_source
from tilewright.driver.compile_in_subprocess import compile_in_subprocess
from tilewright.driver.options import CompileOptions, make_options
from tilewright.driver.timings import Timings
from tilewright.frontends.onnx.segments.data_dependent import DataDependent

ROOT = Path(__file__).parents[2]
COMPILE = """
import json, sys
import numpy as np
import tilewright as tw

try:
    found = tw.compile(sys.argv[1], dims={"N": 3}, threads=1)(np.ones((3, 16), np.float32)).tolist()
except tw.Error as error:
    found = str(error)
print(json.dumps([found, "tilewright.ir" in sys.modules]))
"""


def compile_in_new_process(path: Path, cache: Path, **variables: str) -> Any:
    environment = {**os.environ, "TW_CACHE": "on", "TW_CACHE_DIR": str(cache), **variables}
    command = [sys.executable, "-c", COMPILE, str(path)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, check=True, timeout=120
    )
    return json.loads(done.stdout)


def test_a_process_that_runs_a_model_never_loads_the_compiler(tmp_path: Path) -> None:
    model = mlp("N")
    found, loaded = compile_in_new_process(save(model, tmp_path / "m.onnx"), tmp_path / "cache")
    (expected,) = reference(model, {"x": np.ones((3, 16), np.float32)}).values()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
    assert not loaded


def test_who_wants_to_see_the_compiler_has_it_in_the_process(tmp_path: Path) -> None:
    path = save(mlp("N"), tmp_path / "m.onnx")
    assert compile_in_new_process(path, tmp_path / "cache", TW_LOG="info")[1]


def test_a_model_with_an_error_is_not_compiled_again(tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"\x08\x07no model")
    found, loaded = compile_in_new_process(path, tmp_path / "cache")
    with pytest.raises(FrontendError) as caught:
        compile_source(path, make_options())
    assert found == str(caught.value)
    assert not loaded


def test_a_model_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    path = save(mlp("N"), tmp_path / "m.onnx")
    found, _ = compile_in_new_process(path, tmp_path / "cache", TW_COMPILE_LIMIT_S="0.01")
    assert found.startswith("UnsupportedError[compile.time-limit]: compiling takes longer than")


@pytest.fixture
def unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if nothing of the compiler were loaded."""
    monkeypatch.delitem(sys.modules, "tilewright.ir", raising=False)


def test_the_file_is_the_same_wherever_it_is_made(unloaded: None, tmp_path: Path) -> None:
    path, there, here = save(mlp("N"), tmp_path / "m.onnx"), tmp_path / "there", tmp_path / "here"
    options = make_options(
        "x86-64-v3", "bf16", {"N": 2}, disable_passes=["fold_constants"], checks="off"
    )
    assert compile_in_subprocess(path, options, there)
    compile_source(path, options).write(here)
    assert there.read_bytes() == here.read_bytes()


def test_errors_keep_their_class_and_their_words(unloaded: None, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 17]> g (float[N] x) => (float[N] y)
    { y = NoSuchOperator(x) }"""
    path = save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(UnsupportedError) as here:
        compile_source(path, make_options())
    with pytest.raises(UnsupportedError) as there:
        compile_in_subprocess(path, make_options(), tmp_path / "made")
    assert str(there.value) == str(here.value)


def test_models_for_segments_are_recognised(unloaded: None, tmp_path: Path) -> None:
    text = """<ir_version: 10, opset_import: ["" : 17]> g (float[N] x, int64[1] axes) => (float y)
    { y = ReduceSum <keepdims = 0> (x, axes) }"""
    path = save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    with pytest.raises(DataDependent) as caught:
        compile_in_subprocess(path, make_options(), tmp_path / "made")
    assert caught.value.code == "onnx.data-dependent"


@pytest.fixture
def no_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*args: Any, **kwargs: Any) -> None:
        pytest.fail("a process was started")

    monkeypatch.setattr(subprocess_module, "WorkerProcess", start)


def test_where_the_compiler_is_loaded_no_process_is_started(no_process: None) -> None:
    importlib.import_module("tilewright.ir")
    assert not compile_in_subprocess("m.onnx", make_options(), Path("made"))


@pytest.mark.parametrize(
    "special",
    [
        {"timings": Timings()},
        {"progress": print},
        {"overrides": Path("loops")},
        {"schedules": print},
        {"records": object()},
    ],
    ids=lambda special: next(iter(special)),
)
def test_options_that_only_this_process_knows(
    special: dict[str, Any], unloaded: None, no_process: None
) -> None:
    assert not compile_in_subprocess("m.onnx", replace(make_options(), **special), Path("made"))


def test_models_that_only_this_process_has(unloaded: None, no_process: None) -> None:
    assert not compile_in_subprocess(b"model", make_options(), Path("made"))
    assert not compile_in_subprocess(mlp(2), make_options(), Path("made"))


def test_switches_and_logs_of_this_process(
    unloaded: None, no_process: None, caplog: pytest.LogCaptureFixture
) -> None:
    with override(verify=2):
        assert not compile_in_subprocess("m.onnx", make_options(), Path("made"))
    with caplog.at_level(logging.INFO, "tilewright"):
        assert not compile_in_subprocess("m.onnx", make_options(), Path("made"))


@pytest.mark.parametrize("executable", ["/nowhere/python", "/usr/bin/blender"])
def test_where_no_process_can_be_started(
    executable: str, unloaded: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    assert not compile_in_subprocess("m.onnx", make_options(), tmp_path / "made")


def test_a_request_says_all_options_that_are_plain() -> None:
    given = {"target", "precision", "dims", "disable_passes", "target_name", "checks"}
    # What the model runs on and where it is kept is the business of who asks.
    rest = {"threads", "cache", "overrides", "records", "schedules", "timings", "progress"}
    assert given | rest == {*CompileOptions.__dataclass_fields__}
    assert given <= {*subprocess_module._request("m.onnx", make_options(), Path("made"))}
