"""Algorithms of single kernels: products, convolutions, attention, recurrences."""

from __future__ import annotations

from tilewright.methods.method import Method, Result, Section
from tilewright.methods.sources import GPU, LAUNCHES, SPEED, STREAM_K

KERNEL_METHODS = Section(
    "Kernel algorithms",
    "How the kernels that take most of the time are computed.",
    (
        Method(
            "Cache-blocked GEMM",
            "2008, TOMS",
            "Keep a tile of sums in registers, a packed panel in the first cache and a block of "
            "rows in the second, so that each operand crosses each level as rarely as possible.",
            files=(
                "tilewright/schedule/builtin/tile.py",
                "tilewright/schedule/builtin/register_tile.py",
                "tilewright/schedule/builtin/deep_tile.py",
                "tilewright/schedule/builtin/row_groups.py",
            ),
            command="python benchmarks/latency.py kernels --engines tilewright,torch",
            result=Result("gemm_512 in f32: 3.75 ms, torch 3.88 ms", SPEED),
        ),
        Method(
            "Winograd convolution",
            "2016, CVPR",
            "Compute a small tile of a convolution by fewer products between transformed inputs "
            "and filters; the interpolation points are chosen for the least rounding error.",
            files=(
                "tilewright/ops/toom_cook.py",
                "tilewright/ops/winograd.py",
                "tilewright/passes/winograd.py",
                "tilewright/passes/winograd_cost.py",
            ),
            command="python -m pytest tests/ops/test_winograd.py tests/passes/test_winograd.py",
            result=Result("conv3x3_56x56_64to64: 1.28 ms, by ONNX Runtime 3.92 ms", SPEED),
        ),
        Method(
            "Implicit GEMM",
            "2014, arXiv 1410.0759",
            "A convolution is a product with the im2col matrix of its windows, which is never "
            "stored: tiles of it are gathered as they are needed.",
            files=(
                "tilewright/ops/windows.py",
                "tilewright/schedule/primitives/to_product.py",
                "tilewright/schedule/builtin/gpu/windows.py",
            ),
            command="python benchmarks/gpu/models.py resnet50 --batches 32 --precisions fp16",
            result=Result(
                "resnet50 at batch 32 in fp16 on an H200: 1.136 ms, Inductor in a graph 1.444 ms",
                GPU,
            ),
        ),
        Method(
            "FlashAttention",
            "2022, NeurIPS",
            "Walk the keys in blocks with a running maximum and sum, so that the scores exist for "
            "one block at a time and never reach memory.",
            files=(
                "tilewright/passes/form_attention.py",
                "tilewright/ops/attend_loops.py",
                "tilewright/ops/attend_tiles.py",
                "tilewright/schedule/builtin/attention.py",
                "tilewright/schedule/builtin/gpu/attention.py",
            ),
            missing="f32 and heads beyond 128 on GPUs; the backward pass",
            command="python benchmarks/gpu/attention.py --only 4096",
            result=Result(
                "4096 queries and keys, heads of 64 in bf16 on an H200: 0.5653 ms, torch 0.6315 ms",
                GPU,
            ),
        ),
        Method(
            "Flash-Decoding",
            "2023, Stanford",
            "With few queries and many keys, give parts of the keys to different blocks and merge "
            "their partial softmaxes afterwards.",
            files=("tilewright/ops/attend_parts.py", "tilewright/passes/join_heads.py"),
            command="python benchmarks/gpu/attention.py --only 1x16384",
            result=Result(
                "one query, 16384 keys, 32 heads in groups of 4, bf16: 0.02327 ms, torch "
                "0.02414 ms",
                GPU,
            ),
        ),
        Method(
            "Warp specialization",
            "2011, SC",
            "Some warps only copy tiles through a ring of buffers while others compute; blocks "
            "stay for several tiles, and groups of warps take turns.",
            files=(
                "tilewright/codegen/apart.py",
                "tilewright/codegen/apart_product.py",
                "tilewright/codegen/apart_attention.py",
                "tilewright/finalize/gpu/apart.py",
            ),
            command="python -m pytest tests/codegen/test_apart_product.py",
            result=Result(
                "attention over 4096 keys, heads of 128 in bf16: 0.7882 ms, torch 0.8809 ms", GPU
            ),
        ),
        Method(
            "Stream-K",
            "2023, PPoPP",
            "Divide the steps of all output tiles evenly over the multiprocessors, across tile "
            "borders, and add the parts of shared tiles.",
            files=("tilewright/codegen/shared_product.py", "tilewright/finalize/gpu/shares.py"),
            missing="stream-K for the last wave of many tiles only",
            command="python benchmarks/gpu/products.py --only 1152",
            result=Result(
                "1152 x 4096 x 8192 in bf16: 179 µs before, 105 µs with equal shares, cuBLAS 96 µs",
                STREAM_K,
            ),
        ),
        Method(
            "Persistent recurrent kernels",
            "2016, ICML",
            "One launch for all steps of a recurrent layer: weights stay in registers or shared "
            "memory, and blocks wait for each other between steps.",
            files=(
                "tilewright/codegen/staying.py",
                "tilewright/finalize/gpu/reside.py",
                "tilewright/schedule/builtin/gpu/steps.py",
            ),
            missing="more than 16 rows in f32",
            command="python benchmarks/gpu/models.py lstm --batches 1 --precisions f32",
            result=Result("lstm at batch 1 in f32: 0.2372 ms, eager in a graph 0.4819 ms", GPU),
        ),
        Method(
            "Programmatic dependent launch",
            "2022, NVIDIA",
            "A kernel is placed while the one before it drains, and waits for its data inside.",
            files=(
                "tilewright/codegen/nvptx.py",
                "tilewright/codegen/launches.py",
                "tilewright/runtime/cuda/layouts.py",
            ),
            command="python -m pytest tests/codegen/test_launches.py",
            result=Result("45 small launches on an H200: 148.6 µs, without it 151.8 µs", LAUNCHES),
        ),
    ),
)
