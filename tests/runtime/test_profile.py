from __future__ import annotations

import pytest

from tilewright.runtime.profile import Measured, Profile, make_profile, step_work
from tilewright.runtime.roofline.roofline import KernelWork, Level, Roofline

MANIFEST = {
    "kernels": [
        {"name": "conv_relu", "flops": 2_000_000, "bytes": 1000, "weights": 100, "nodes": ["a"]},
        {
            "name": "softmax",
            "flops": "N * 10",
            "bytes": "N * 8",
            "nodes": ["b"],
            "unfused_reason": ["c"],
        },
        {"name": "never", "flops": None, "bytes": 1},
        {"name": "conv_relu", "flops": 2_000_000, "bytes": 1000, "weights": 100, "nodes": ["d"]},
    ],
    "schedules": {"conv_relu": {"rule": "tile", "why": "", "decisions": ["vectors of 4"]}},
}
ROOFLINE = Roofline(
    1, {"f32": 1e12}, (Level("L1", 1e6, 1e10), Level("memory", float("inf"), 1e9)), 10.0
)
TIMES = [[4010, 8010, 510, 4010], [5010, 10010, 1010, 4010]]


def _profile(roofline: Roofline | None = ROOFLINE) -> Profile:
    measured = Measured(TIMES, [16640, 21040], [18000, 17000])
    return make_profile(MANIFEST, {"N": 100}, measured, 1e3, roofline)


def test_the_clock_is_no_part_of_a_time() -> None:
    first, softmax, never, _ = _profile().rows
    assert first.ns == (4000, 5000)
    assert (first.least, first.median) == (4000, 4500)
    assert softmax.work == KernelWork(1000, 800)
    assert never.work is None
    assert never.flops_per_second is None
    assert _profile(None).rows[0].ns == (4010, 5010)


def test_steps_of_one_kernel_together() -> None:
    softmax, conv, never = _profile().by_kernel()[0], *_profile().by_kernel()[1:]
    assert [row.name for row in (softmax, conv, never)] == ["conv_relu", "softmax", "never"]
    assert softmax.calls == 2
    assert softmax.ns == (8000, 9000)
    assert softmax.flops_per_second == pytest.approx(4e6 / 8e-6)
    assert softmax.of_roof == pytest.approx(4e-6 / 8e-6)


def test_table() -> None:
    lines = [line.split() for line in str(_profile()).splitlines()]
    assert lines[0][0] == "kernel"
    conv, softmax, never = lines[1:4]
    assert conv[:2] == ["conv_relu", "2"]
    assert conv[5:] == ["500.0", "0.2", "50%", "compute"]
    assert softmax[-2:] == ["1%", "L1"]
    assert never[-4:] == ["-", "-", "-", "-"]
    assert str(_profile()).endswith(
        "all kernels 0.0165 ms, outside of them 0.0001 ms, whole runs without clocks 0.017 ms"
    )


def test_rates_of_a_gpu() -> None:
    manifest = {"kernels": [{"name": "copy", "flops": 2_000_000, "bytes": 8_000_000}]}
    lines = str(make_profile(manifest, {}, Measured([[2000]], [2000]))).splitlines()
    assert {"TFLOP/s", "TB/s"} <= set(lines[0].split())
    assert lines[1].split()[5:7] == ["1.00", "4.00"]


def test_data_says_how_a_kernel_was_made_and_what_it_computes() -> None:
    conv = _profile().data()["kernels"][0]
    assert conv["rule"] == "tile"
    assert [place["nodes"] for place in conv["places"]] == [["a"], ["d"]]
    assert conv["bound"] == "compute"
    assert _profile(None).data()["roofline"] is None


def test_work_at_other_sizes() -> None:
    assert step_work(MANIFEST["kernels"][1], {"N": 2}) == KernelWork(20, 16)  # type: ignore[index]
    assert step_work(MANIFEST["kernels"][1], {}) is None  # type: ignore[index]


def test_a_model_without_kernels() -> None:
    profile = make_profile({"kernels": []}, {}, Measured([[]], [5]))
    assert profile == Profile((), outside_ns=5)
    assert profile.kernels_ns == profile.whole_ns == 0
    assert str(profile).startswith("kernel")
