from __future__ import annotations

from pathlib import Path

import pytest

from tests.models import mlp
from tilewright.core.config import override
from tilewright.core.errors import ConfigError
from tilewright.driver.compile_graph import lower
from tilewright.driver.options import make_options
from tilewright.driver.report.dump import dump_stages
from tilewright.ir.loop.text import parse_func


def test_every_kernel_after_every_stage(tmp_path: Path) -> None:
    build = lower(mlp("N"), make_options())
    dump_stages(build)
    assert not list(tmp_path.iterdir())
    with override(dump="stages", dump_dir=tmp_path / "dump"):
        dump_stages(build)
    kernels = {s.kernel.name: s.kernel for s in build.steps}
    assert {p.name for p in (tmp_path / "dump").iterdir()} == set(kernels)
    for name in kernels:
        folder = tmp_path / "dump" / name
        assert sorted(p.name for p in folder.iterdir()) == [
            "01-schedule.txt",
            "02-finalize.txt",
            "03-codegen.txt",
        ]
        assert parse_func((folder / "01-schedule.txt").read_text()).name == name
    (tmp_path / "file").write_text("")
    with override(dump="stages", dump_dir=tmp_path / "file"), pytest.raises(ConfigError):
        dump_stages(build)
