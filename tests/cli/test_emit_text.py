from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import mlp
from tilewright.cli.emit_text import STAGES, emit_graph, emit_texts, is_folder
from tilewright.core.errors import ConfigError
from tilewright.driver.compile_graph import lower
from tilewright.driver.model_build import ModelBuild
from tilewright.driver.options import make_options


@pytest.fixture(scope="module")
def build() -> ModelBuild:
    return lower(mlp("N"), make_options(target="x86-64-v3"))


@pytest.mark.parametrize("stage", [stage for stage in STAGES if stage != "ptx"])
def test_one_file_or_one_each(stage: str, build: ModelBuild) -> None:
    texts = emit_texts(build, stage, None)["texts"]
    assert len(texts) >= 3
    (single,) = emit_texts(build, stage, Path("all.txt"))["files"]
    assert Path(single).read_text() == "".join(texts.values())
    files = emit_texts(build, stage, Path("folder"))["files"]
    assert [Path(f).stem for f in files] == list(texts)


def test_ptx_is_for_gpus(build: ModelBuild) -> None:
    with pytest.raises(ConfigError, match="for NVIDIA GPUs"):
        emit_texts(build, "ptx", None)
    texts = emit_texts(lower(mlp("N"), make_options(target="cuda")), "ptx", None)["texts"]
    assert all(".entry" in text for text in texts.values())


def test_a_graph(build: ModelBuild) -> None:
    assert "fused(" in emit_graph(build.graph, None)["texts"]["mlp"]
    assert emit_graph(build.graph, Path("folder"))["files"][0] == "folder/mlp.graph"


def test_folders() -> None:
    Path("file").write_text("")
    assert is_folder(Path())
    assert is_folder(Path("new"))
    assert not is_folder(Path("file"))
    assert not is_folder(Path("new.txt"))
