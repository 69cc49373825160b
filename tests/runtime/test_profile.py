from __future__ import annotations

from tilewright.runtime.profile import KernelTime, Profile, Roofline, make_profile

MANIFEST = {
    "kernels": [
        {"name": "conv_relu", "flops": 2e9, "bytes": 1e6},
        {"name": "softmax", "flops": None, "bytes": None},
        {"name": "never", "flops": 1.0, "bytes": 1.0},
    ],
    "roofline": {"flops_per_second": 4e11, "bytes_per_second": 2e10},
}


def test_rates_are_per_run() -> None:
    conv, softmax, never = make_profile(MANIFEST, 10, [100_000_000, 300_000_000, 0]).rows
    assert conv == KernelTime("conv_relu", 10, 100_000_000, 2e9, 1e6)
    assert conv.flops_per_second == 2e11
    assert conv.bytes_per_second == 1e8
    assert softmax.flops_per_second is None
    assert never.flops_per_second is None


def test_share_of_the_nearer_limit() -> None:
    profile = make_profile(MANIFEST, 10, [100_000_000, 300_000_000, 0])
    assert profile.roofline is not None
    assert profile.roofline.share(profile.rows[0]) == 0.5
    assert profile.roofline.share(profile.rows[1]) is None
    assert Roofline(0, 0).share(profile.rows[0]) is None


def test_table() -> None:
    text = str(make_profile(MANIFEST, 10, [100_000_000, 300_000_000, 0]))
    assert text.splitlines() == [
        "kernel     uses       ms  share  GFLOP/s  GB/s  roofline",
        "softmax       1  30.0000  75.0%        -     -         -",
        "conv_relu     1  10.0000  25.0%    200.0   0.1       50%",
        "never         1   0.0000   0.0%        -     -         -",
    ]


def test_a_model_without_kernels() -> None:
    profile = make_profile({"kernels": []}, 1, [])
    assert profile == Profile(())
    assert profile.ns == 0
    assert str(profile).startswith("kernel")
