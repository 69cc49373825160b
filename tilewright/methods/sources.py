"""The pages and files that results are quoted from, each named once."""

from __future__ import annotations

# Written by benchmarks.
SPEED = "docs/speed.md"
GPU = "docs/gpu.md"
CONFORMANCE = "docs/conformance.md"
CPU_RESULTS = "benchmarks/results/2026-11-16-neoverse-n1.json"

# Written by hand, with the figures of an experiment.
LAYOUTS = "docs/design/0007-layouts.md"
CONCATENATIONS = "docs/design/0013-data-movement.md"
FUZZING = "docs/design/0019-fuzzing.md"
REGIONS = "docs/design/0022-regions.md"
SPACES = "docs/design/0023-spaces-of-schedules.md"
MEASURING = "docs/design/0024-measuring-candidates.md"
FEATURES = "docs/design/0026-features-and-cost.md"
TENSOR_CORES = "docs/design/0029-products-on-tensor-cores.md"
SEARCH = "docs/design/0031-speed-of-search.md"
GPU_RUNTIME = "docs/design/0034-gpu-runtime.md"
LAUNCHES = "docs/design/0037-launches-and-sums-on-gpus.md"
TUNING = "docs/design/0042-what-search-gains.md"
STREAM_K = "docs/design/0043-shares-of-products.md"
