"""What drivers say of some GPUs."""

from __future__ import annotations

from dataclasses import replace

from tilewright.core.host.cuda_device import CudaDevice

H200 = CudaDevice(
    name="NVIDIA H200",
    major=9,
    minor=0,
    sm_count=132,
    clock_khz=1_980_000,
    memory_clock_khz=3_201_000,
    bus_bits=6016,
    l2=60 << 20,
    warp_size=32,
    threads_per_sm=2048,
    threads_per_block=1024,
    registers_per_sm=65536,
    shared_per_sm=228 << 10,
    static_shared=48 << 10,
)
H100 = replace(H200, name="NVIDIA H100", memory_clock_khz=2_619_000, bus_bits=5120, l2=50 << 20)
RTX_3060 = replace(
    H200,
    name="NVIDIA GeForce RTX 3060",
    major=8,
    minor=6,
    sm_count=28,
    clock_khz=1_777_000,
    memory_clock_khz=7_501_000,
    bus_bits=192,
    l2=9 << 18,
    threads_per_sm=1536,
    shared_per_sm=100 << 10,
)
