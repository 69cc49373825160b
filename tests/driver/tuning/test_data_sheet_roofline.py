from __future__ import annotations

import pytest

from tilewright.driver.tuning.data_sheet_roofline import data_sheet_roofline
from tilewright.runtime.roofline.roofline import KernelWork
from tilewright.target.gpu import with_tf32
from tilewright.target.registry import GPUS

H200 = GPUS["sm_90a"]


def test_products_are_bound_by_tensor_cores() -> None:
    roofline = data_sheet_roofline(H200)
    wide = KernelWork(2 * 4096.0**3, 3 * 4096.0**2 * 2, 4096.0**2 * 2, "f16")
    bound = roofline.bound(wide, 1e9)
    assert bound.by == "compute"
    assert bound.seconds == pytest.approx(2 * 4096**3 / 989e12)
    assert roofline.flops_per_second["f32"] == H200.f32_rate
    assert data_sheet_roofline(with_tf32(H200)).flops_per_second["f32"] == H200.mma_rate / 2


def test_what_moves_much_is_bound_by_memory() -> None:
    roofline = data_sheet_roofline(H200)
    bound = roofline.bound(KernelWork(1e6, 4.8e9), 1e10)
    assert bound.by == "memory"
    assert bound.seconds == pytest.approx(1e-3)
    assert roofline.bound(KernelWork(1e3, 1e6), 1e6).by == "L2"
