"""One small model, explored and measured once for all tests of the explorer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.models import convnet
from tilewright.driver.options import make_options
from tilewright.driver.report.explorer.document import ExploredModel
from tilewright.driver.report.explorer.explore import explore_compiled
from tilewright.runtime.roofline.roofline import Level, Roofline

ROOFLINE = Roofline(1, {"f32": 1e11}, (Level("memory", float("inf"), 1e10),))


@pytest.fixture(scope="session")
def measured() -> ExploredModel:
    """A network of convolutions with measured times."""
    options = make_options("native", cache=False, threads=1)
    explored, model = explore_compiled("convnet.onnx", convnet(1), options)
    with model:
        shape = [int(d) for d in model.inputs[0].shape]
        profile = model.profile(np.zeros(shape, np.float32), runs=3, roofline=ROOFLINE)
    return replace(explored, profile=profile, roofline=ROOFLINE)


@pytest.fixture(scope="session")
def unmeasured(measured: ExploredModel) -> ExploredModel:
    """The same without times."""
    return replace(measured, profile=None)
