from __future__ import annotations

from tilewright.driver.report.gpu_roofline import gpu_roofline
from tilewright.runtime.roofline.roofline import Bound, KernelWork
from tilewright.target.gpu import with_tf32
from tilewright.target.registry import resolve_gpu

H200 = resolve_gpu("cuda -arch=sm_90a")


def test_products_of_16_bits_have_their_own_roof() -> None:
    roofline = gpu_roofline(H200)
    assert roofline.bound(KernelWork(989e12, 1.0, element="f16"), 0) == Bound(1.0, "compute")
    assert roofline.bound(KernelWork(67e12, 1.0), 0) == Bound(1.0, "compute")


def test_everything_comes_from_memory() -> None:
    assert gpu_roofline(H200).bound(KernelWork(1.0, 9.6e12, 4.8e12), 1e9) == Bound(2.0, "memory")


def test_f32_that_may_be_rounded() -> None:
    rounded, plain = (gpu_roofline(t).flops_per_second["f32"] for t in (with_tf32(H200), H200))
    assert rounded > 7 * plain
