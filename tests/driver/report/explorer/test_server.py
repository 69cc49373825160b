from __future__ import annotations

import json
import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tilewright.core.errors import ConfigError, FrontendError
from tilewright.driver.report.explorer.document import ExploredModel
from tilewright.driver.report.explorer.server import HOST, LiveExplorer, make_server


@contextmanager
def served(explorer: LiveExplorer) -> Iterator[str]:
    with make_server(explorer, 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://{HOST}:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def get(address: str) -> str:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return str(answer.read().decode())


def test_a_model_is_built_again_when_its_file_changes(
    unmeasured: ExploredModel, tmp_path: Path
) -> None:
    file = tmp_path / "model.onnx"
    file.touch()
    made: list[int] = []

    def make() -> ExploredModel:
        made.append(1)
        if len(made) > 2:
            raise FrontendError("onnx.parse", "half written")
        return unmeasured

    with served(LiveExplorer(file, make)) as address:
        page = get(f"{address}/")
        assert "<title>convnet.onnx" in page
        assert 'id="kernel-0"' not in page  # texts are asked for
        texts = json.loads(get(f"{address}/texts/kernel-4"))
        assert texts["assembly"]
        assert json.loads(get(f"{address}/version")) == {"version": 1, "problem": ""}
        os.utime(file, ns=(1, 1))
        assert json.loads(get(f"{address}/version"))["version"] == 2
        assert len(made) == 2
        os.utime(file, ns=(2, 2))
        state = json.loads(get(f"{address}/version"))
        assert state["version"] == 2
        assert "half written" in state["problem"]
        assert "<title>convnet.onnx" in get(f"{address}/")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(f"{address}/texts/kernel-99")


def test_a_port_that_is_taken(unmeasured: ExploredModel, tmp_path: Path) -> None:
    file = tmp_path / "model.onnx"
    file.touch()
    explorer = LiveExplorer(file, lambda: unmeasured)
    with (
        make_server(explorer, 0) as server,
        pytest.raises(ConfigError, match="cannot serve on port"),
    ):
        make_server(explorer, server.server_address[1])
