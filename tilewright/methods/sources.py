"""The pages and files that results are quoted from, each named once."""

from __future__ import annotations

# Written by benchmarks.
SPEED = "docs/results/speed-aarch64.md"
GPU = "docs/results/gpu.md"
CONFORMANCE = "docs/results/conformance.md"
CPU_RESULTS = "benchmarks/results/2026-11-16-neoverse-n1.json"

# Written by hand, with the figures of an experiment.
LAYOUTS = "docs/log/2026-11-15-layouts-transposes-depthwise.md"
CONCATENATIONS = "docs/log/2026-11-15-data-movement.md"
FUZZING = "docs/log/2026-11-15-fuzzing.md"
REGIONS = "docs/log/2026-11-15-inter-op-parallelism.md"
SPACES = "docs/log/2026-11-15-schedule-spaces.md"
MEASURING = "docs/log/2026-11-15-measuring-candidates.md"
FEATURES = "docs/log/2026-11-15-features-and-cost-models.md"
TENSOR_CORES = "docs/log/2026-11-15-tensor-core-gemm.md"
SEARCH = "docs/log/2026-11-15-tuning-speed.md"
GPU_RUNTIME = "docs/log/2026-11-16-gpu-runtime.md"
LAUNCHES = "docs/log/2026-11-16-dependent-launch-and-reductions.md"
TUNING = "docs/log/2026-11-16-tuning-gains.md"
STREAM_K = "docs/log/2026-11-17-stream-k.md"
