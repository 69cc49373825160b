from __future__ import annotations

import numpy as np

from tests.differential.kernel_graphs import KERNELS
from tests.for_each import for_each
from tests.schedule.builtin.gpu.gemm.test_tensor_core import dense, the_kernel
from tests.schedule.builtin.gpu.scheduled import H200, scheduled
from tilewright.core.dtypes import F16
from tilewright.tune.cost.analytical import AnalyticalCost
from tilewright.tune.features.gpu_program import gpu_feature_names, gpu_program_features
from tilewright.tune.features.program import features_for, fewest_columns


@for_each("name", ["dense", "conv", "softmax", "transposes", "sum_all", "depthwise"])
def test_every_schedule_has_a_row(name: str) -> None:
    for result in scheduled(KERNELS[name](24, 32, 40)):
        row = features_for(result.func, H200)
        assert row.shape == (len(gpu_feature_names()),)
        assert np.isfinite(row).all()
        assert row[0] > 0


def test_the_estimate_orders_products() -> None:
    sizes = [(256, 256, 256), (1024, 1024, 1024), (4096, 4096, 1024)]
    rows = [gpu_program_features(the_kernel(dense(*s, F16))[1], H200) for s in sizes]
    scores = AnalyticalCost().predict(np.vstack(rows))
    assert scores[0] > scores[1] > scores[2]
    assert fewest_columns() == len(rows[0])


def test_columns_have_names_of_their_own() -> None:
    names = gpu_feature_names()
    assert len(set(names)) == len(names)
