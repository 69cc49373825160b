from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import tilewright as tw
from tests.frontends.torch.program.saved import rewritten, saved
from tilewright.core.errors import Error, FrontendError, UnsupportedError
from tilewright.frontends.torch.capture import import_saved


class Model(nn.Module):
    """Open sizes, a keyword, results by names, numbers, an inner region without gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(5, 3), nn.BatchNorm1d(3)
        self.register_buffer("scales", torch.arange(3.0))

    def forward(self, x: torch.Tensor, *, by: torch.Tensor) -> Any:
        y = self.norm(self.linear(x)) * self.scales * by
        with torch.no_grad():
            low, high = torch.split(y, 2, dim=1)
        return {"flat": y.view(x.shape[0] * 3), "rest": (low, high.sum()), "n": x.shape[0]}


def test_a_program_computes_what_its_module_does(tmp_path: Path) -> None:
    module = Model().eval()
    batch = torch.export.Dim("batch", min=2, max=64)
    shapes = {"x": {0: batch}, "by": None}
    given = (torch.randn(4, 5),), {"by": torch.randn(3)}
    path = saved(module, given[0], tmp_path / "m.pt2", given[1], shapes)
    model = tw.compile(path)
    assert [port.name for port in model.inputs] == ["x", "by"]
    assert [port.name for port in model.outputs] == ["flat", "rest.0", "rest.1", "n"]
    for size in (2, 7):
        x, by = torch.randn(size, 5), torch.randn(3)
        expected = module(x, by=by)
        flat, low, high, n = model(x=x, by=by)
        np.testing.assert_allclose(flat, expected["flat"].detach(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(low, expected["rest"][0].detach(), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(high, expected["rest"][1].detach(), rtol=1e-5, atol=1e-5)
        assert n == size
    with pytest.raises(Error):
        model(x=torch.randn(4, 6), by=torch.randn(3))


def test_functions_in_a_program(tmp_path: Path) -> None:
    class Chosen(nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            with torch.autocast("cpu", dtype=torch.bfloat16):
                y = x @ x.T
            return torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)), y.float()

    module = Chosen().eval()
    x = torch.rand(4, 4)
    model = tw.compile(saved(module, (x,), tmp_path / "m.pt2"))
    for case in (x, -x):
        for ours, theirs in zip(model(case), module(case), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-2, atol=1e-2)


def _with_json(path: Path, to: Path, old: str, new: str) -> Path:
    """A copy of a program in which what matches `old` is `new`."""

    def change(data: bytes) -> bytes:
        changed, count = re.subn(old, new.replace("\\", r"\\"), data.decode())
        assert count
        return changed.encode()

    return rewritten(path, to, {"models/model.json": change})


def test_nothing_in_a_file_is_executed(tmp_path: Path) -> None:
    """torch itself evaluates expressions for sizes: one that writes a file writes none here."""
    module, trace = nn.Linear(4, 3).eval(), tmp_path / "written"
    shapes = {"input": {0: torch.export.Dim("n", min=2)}}
    path = saved(module, (torch.randn(2, 4),), tmp_path / "m.pt2", shapes=shapes)
    harmful = f"open('{trace}', 'w')"
    changed = _with_json(path, tmp_path / "a.pt2", r"Symbol\('\w+'[^()]*\)", harmful)
    tw.compile(changed)
    assert not trace.exists()
    called = _with_json(path, tmp_path / "b.pt2", r"torch\.ops\.aten\.linear\.default", "os.system")
    with pytest.raises(UnsupportedError, match=r"calls os\.system"):
        import_saved(called)


def test_programs_that_do_not_fit_are_told(tmp_path: Path) -> None:
    path = saved(nn.Linear(4, 3).eval(), (torch.randn(2, 4),), tmp_path / "m.pt2")
    operand = '"name": "weight", "arg": {"as_tensor": {"name": "%s"'
    old, new = re.escape(operand % "p_weight"), operand % "nothing"
    missing = _with_json(path, tmp_path / "a.pt2", old, new)
    with pytest.raises(FrontendError):
        import_saved(missing)
    swapped = _with_json(path, tmp_path / "b.pt2", "aten.linear.default", "aten.mul.Tensor")
    with pytest.raises(FrontendError, match=r"torch\.export cannot trace"):
        import_saved(swapped)


def test_what_changes_its_state_is_refused(tmp_path: Path) -> None:
    class Counting(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x + self.calls

    program = torch.export.export(Counting().eval(), (torch.randn(3),)).run_decompositions()
    torch.export.save(program, tmp_path / "m.pt2")
    with pytest.raises(UnsupportedError, match="changes calls when it runs"):
        import_saved(tmp_path / "m.pt2")
