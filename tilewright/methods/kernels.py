"""Algorithms of single kernels: products, convolutions, attention, recurrences."""

from __future__ import annotations

from tilewright.methods.method import MethodResult, MethodSection, PublishedMethod
from tilewright.methods.sources import GPU, LAUNCHES, SPEED, STREAM_K

KERNEL_METHODS = MethodSection(
    "Kernel algorithms",
    "How the kernels that take most of the time are computed.",
    (
        PublishedMethod(
            "Cache-blocked GEMM",
            "2008, TOMS",
            "Keep a tile of sums in registers, a packed panel in the first cache and a block of "
            "rows in the second, so that each operand crosses each level as rarely as possible.",
            files=(
                "tilewright/schedule/builtin/cpu/gemm/register_blocked.py",
                "tilewright/schedule/builtin/cpu/gemm/microkernel_model.py",
                "tilewright/schedule/builtin/cpu/gemm/k_blocked.py",
                "tilewright/schedule/builtin/cpu/gemm/kc_blocking.py",
                "tilewright/schedule/builtin/cpu/gemm/mc_blocking.py",
            ),
            command="python benchmarks/latency.py kernels --engines tilewright,torch",
            result=MethodResult("gemm_512 in f32: 3.75 ms, torch 3.88 ms", SPEED),
        ),
        PublishedMethod(
            "Winograd convolution",
            "2016, CVPR",
            "Compute a small tile of a convolution by fewer products between transformed inputs "
            "and filters; the interpolation points are chosen for the least rounding error.",
            files=(
                "tilewright/ops/conv/toom_cook.py",
                "tilewright/ops/conv/winograd.py",
                "tilewright/passes/conv/winograd.py",
                "tilewright/passes/conv/winograd_cost.py",
            ),
            command="python -m pytest tests/ops/conv/test_winograd.py "
            "tests/passes/conv/test_winograd.py",
            result=MethodResult("conv3x3_56x56_64to64: 1.28 ms, by ONNX Runtime 3.92 ms", SPEED),
        ),
        PublishedMethod(
            "Implicit GEMM",
            "2014, arXiv 1410.0759",
            "A convolution is a product with the im2col matrix of its windows, which is never "
            "stored: tiles of it are gathered as they are needed.",
            files=(
                "tilewright/ops/conv/im2col.py",
                "tilewright/schedule/primitives/to_gemm.py",
                "tilewright/schedule/builtin/gpu/depthwise.py",
            ),
            command="python benchmarks/gpu/models.py resnet50 --batches 32 --precisions fp16",
            result=MethodResult(
                "resnet50 at batch 32 in fp16 on an H200: 1.136 ms, Inductor in a graph 1.444 ms",
                GPU,
            ),
        ),
        PublishedMethod(
            "FlashAttention",
            "2022, NeurIPS",
            "Walk the keys in blocks with a running maximum and sum, so that the scores exist for "
            "one block at a time and never reach memory.",
            files=(
                "tilewright/passes/attention/fuse_attention.py",
                "tilewright/ops/attention/flash_loops.py",
                "tilewright/ops/attention/tiled_loops.py",
                "tilewright/schedule/builtin/cpu/attention.py",
                "tilewright/schedule/builtin/gpu/attention.py",
            ),
            missing="f32 and heads beyond 128 on GPUs; the backward pass",
            command="python benchmarks/gpu/attention.py --only 4096",
            result=MethodResult(
                "4096 queries and keys, heads of 64 in bf16 on an H200: 0.5653 ms, torch 0.6315 ms",
                GPU,
            ),
        ),
        PublishedMethod(
            "Flash-Decoding",
            "2023, Stanford",
            "With few queries and many keys, give parts of the keys to different blocks and merge "
            "their partial softmaxes afterwards.",
            files=(
                "tilewright/ops/attention/split_kv.py",
                "tilewright/passes/attention/pack_gqa.py",
            ),
            command="python benchmarks/gpu/attention.py --only 1x16384",
            result=MethodResult(
                "one query, 16384 keys, 32 heads in groups of 4, bf16: 0.02327 ms, torch "
                "0.02414 ms",
                GPU,
            ),
        ),
        PublishedMethod(
            "Warp specialization",
            "2011, SC",
            "Some warps only copy tiles through a ring of buffers while others compute; blocks "
            "stay for several tiles, and groups of warps take turns.",
            files=(
                "tilewright/finalize/gpu/warp_specialize.py",
                "tilewright/finalize/gpu/persistent_gemm.py",
                "tilewright/finalize/gpu/overlapped_attention.py",
                "tilewright/ir/loop/interp/agents.py",
            ),
            command="python -m pytest tests/finalize/gpu/test_persistent_gemm.py",
            result=MethodResult(
                "attention over 4096 keys, heads of 128 in bf16: 0.7882 ms, torch 0.8809 ms", GPU
            ),
        ),
        PublishedMethod(
            "Stream-K",
            "2023, PPoPP",
            "Divide the steps of all output tiles evenly over the multiprocessors, across tile "
            "borders, and add the parts of shared tiles.",
            files=(
                "tilewright/finalize/gpu/stream_k_gemm.py",
                "tilewright/finalize/gpu/stream_k.py",
            ),
            missing="stream-K for the last wave of many tiles only",
            command="python benchmarks/gpu/products.py --only 1152",
            result=MethodResult(
                "1152 x 4096 x 8192 in bf16: 179 µs before, 105 µs with stream-K, cuBLAS 96 µs",
                STREAM_K,
            ),
        ),
        PublishedMethod(
            "Persistent recurrent kernels",
            "2016, ICML",
            "One launch for all steps of a recurrent layer: weights stay in registers or shared "
            "memory, and blocks wait for each other between steps.",
            files=(
                "tilewright/codegen/gpu/grid_sync.py",
                "tilewright/finalize/gpu/grid_sync.py",
                "tilewright/schedule/builtin/gpu/recurrence.py",
            ),
            missing="more than 16 rows in f32",
            command="python benchmarks/gpu/models.py lstm --batches 1 --precisions f32",
            result=MethodResult(
                "lstm at batch 1 in f32: 0.2372 ms, eager in a graph 0.4819 ms", GPU
            ),
        ),
        PublishedMethod(
            "Programmatic dependent launch",
            "2022, NVIDIA",
            "A kernel is placed while the one before it drains, and waits for its data inside.",
            files=(
                "tilewright/codegen/gpu/nvptx.py",
                "tilewright/codegen/gpu/launches.py",
                "tilewright/runtime/cuda/driver_structs.py",
            ),
            command="python -m pytest tests/codegen/gpu/test_launches.py",
            result=MethodResult(
                "45 small launches on an H200: 148.6 µs, without it 151.8 µs", LAUNCHES
            ),
        ),
    ),
)
