"""Times measured on an H200.

Other GPUs are scheduled by them too: a k-tile takes as much longer as the tensor cores of an SM are
slower than `MMA_RATE_PER_SM`. Launches, waves and stores count as they do here.
"""

from __future__ import annotations

from math import inf

from tilewright.target.calibration.gpu import (
    AttentionStep,
    AttentionTimes,
    Occupancy,
    ParallelMatmuls,
    RowwiseLimits,
    SimtTileRate,
    SimtTimes,
    TensorCoreTileTime,
    TensorCoreTimes,
    ThinTimes,
)

MMA_RATE_PER_SM = 989e12 / 132

# Times of full tiles. The im2col times of mma.sync tiles above 16 rows are 1.6 times the others:
# estimated, not measured.
TENSOR_CORE = TensorCoreTimes(
    multistage=(
        TensorCoreTileTime(128, 256, 8, 1, 4, 1, 0.645, 1.0, wgmma=True),
        TensorCoreTileTime(128, 192, 8, 1, 5, 1, 0.49, 0.80, wgmma=True),
        TensorCoreTileTime(128, 128, 8, 1, 6, 1, 0.34, 0.62, wgmma=True),
        TensorCoreTileTime(128, 128, 8, 1, 3, 2, 0.335, 0.70, wgmma=True),
        TensorCoreTileTime(128, 96, 8, 1, 4, 2, inf, 0.43, wgmma=True),
        TensorCoreTileTime(128, 64, 8, 1, 8, 1, inf, 0.45, wgmma=True),
        TensorCoreTileTime(128, 64, 8, 1, 4, 2, inf, 0.36, wgmma=True),
        TensorCoreTileTime(128, 32, 8, 1, 5, 2, inf, 0.29, wgmma=True),
        TensorCoreTileTime(64, 192, 4, 1, 6, 1, 0.37, 0.50, wgmma=True),
        TensorCoreTileTime(64, 128, 4, 1, 8, 1, 0.27, 0.46, wgmma=True),
        TensorCoreTileTime(64, 128, 4, 1, 4, 2, 0.205, 0.30, wgmma=True),
        TensorCoreTileTime(64, 64, 4, 1, 8, 1, 0.19, 0.29, wgmma=True),
        TensorCoreTileTime(64, 64, 4, 1, 4, 3, 0.143, 0.25, wgmma=True),
        TensorCoreTileTime(128, 256, 2, 4, 4, 1, 1.3, 2.1),
        TensorCoreTileTime(128, 128, 2, 2, 3, 2, 0.635, 1.0),
        TensorCoreTileTime(64, 128, 2, 2, 3, 3, 0.40, 0.64),
        TensorCoreTileTime(64, 64, 2, 2, 4, 3, 0.20, 0.33),
        TensorCoreTileTime(32, 64, 2, 2, 4, 4, 0.14, 0.22),
        TensorCoreTileTime(32, 32, 1, 1, 2, 12, 0.12, 0.18),
        TensorCoreTileTime(16, 64, 1, 4, 8, 2, 0.135, 0.17),
        TensorCoreTileTime(16, 64, 1, 4, 4, 4, 0.135, 0.17),
    ),
    persistent=(
        TensorCoreTileTime(128, 256, 8, 1, 4, 1, 0.65, wgmma=True),
        TensorCoreTileTime(256, 128, 8, 1, 4, 1, 0.65, wgmma=True, m_repeats=2),
        TensorCoreTileTime(192, 128, 12, 1, 5, 1, 0.495, wgmma=True),
        TensorCoreTileTime(128, 128, 4, 1, 6, 1, 0.345, wgmma=True, m_repeats=2, consumer_groups=2),
        TensorCoreTileTime(128, 192, 8, 1, 5, 1, 0.49, wgmma=True),
        TensorCoreTileTime(128, 160, 8, 1, 5, 1, 0.415, wgmma=True),
        TensorCoreTileTime(128, 128, 8, 1, 6, 1, 0.335, wgmma=True),
        TensorCoreTileTime(128, 96, 8, 1, 7, 1, 0.285, wgmma=True),
        TensorCoreTileTime(128, 64, 8, 1, 8, 1, 0.225, wgmma=True),
    ),
    stream_k=(
        TensorCoreTileTime(128, 256, 8, 1, 4, 1, 0.69, wgmma=True),
        TensorCoreTileTime(128, 128, 8, 1, 6, 1, 0.43, wgmma=True),
    ),
    tma_min_k_tiles=12,
    tma_max_stages=6,
    edge_factor=1.08,
    fill_k_tiles=2.8,
    l2_bytes_per_us=129e3,
    l2_across_bytes_per_us=43.6e3,
    l2_half_share=0.6,
    us_per_epilogue_call=0.037,
    us_per_store=7e-5,
    us_per_wave=1.0,
    us_per_launch=1.0,
    split_k_bytes_per_us=8e6,
    us_persistent_start=0.2,
    us_per_pingpong_call=0.065,
    pingpong_stores=0.8,
    pingpong_alone=1.12,
    us_per_fixup_element=1.1e-4,
    us_per_fixup_part=9e-5,
    stream_k_max_tiles=2,
)

# Rates of 3072 x 16384 x 1024 in every layout of the operands; 64 x 96 is taken to be as 48 x 128.
SIMT = SimtTimes(
    tiles=(
        SimtTileRate(256, 128, 16, 16, 16, 1, 0.768, 22.0, 21.0),
        SimtTileRate(128, 128, 16, 16, 16, 2, 0.756, 24.0, 21.0),
        SimtTileRate(96, 128, 16, 8, 16, 2, 0.767, 14.5, 8.0),
        SimtTileRate(128, 64, 16, 16, 8, 4, 0.761, 7.0, 24.0),
        SimtTileRate(64, 128, 16, 8, 16, 4, 0.729, 7.7, 8.4),
        SimtTileRate(64, 96, 16, 8, 8, 5, 0.77, 8.4, 9.5),
        SimtTileRate(48, 128, 16, 4, 16, 5, 0.78, 8.4, 9.5),
        SimtTileRate(64, 64, 16, 8, 8, 6, 0.768, 6.0, 33.0),
        SimtTileRate(64, 64, 8, 8, 8, 6, 0.72, 16.0, 7.2),
        SimtTileRate(32, 64, 16, 4, 8, 9, 0.72, 6.0, 16.0),
        SimtTileRate(32, 64, 8, 4, 8, 12, 0.717, 13.0, 9.0),
        SimtTileRate(32, 32, 16, 4, 8, 13, 0.662, 3.0, 25.0),
        SimtTileRate(32, 32, 8, 4, 8, 16, 0.632, 12.5, 15.0),
        SimtTileRate(16, 32, 16, 4, 8, 16, 0.484, 2.0, 37.0),
    ),
    few_warps_factor=0.9,
    few_warps=4,
    schedulers=4,
    word=7.4,
    ragged_word=24.0,
    placed_word=8.4,
    window_word=63.0,
    vector_rate=5.6e12,
    k_major_rate=3.6e12,
    k_major_step=16,
    transposed_rate=2.2e12,
    wave=1.5e-6,
    launch=2e-6,
    split_k_rate=8e12,
    transpose_launch=4e-6,
    transpose_rate=3.6e12,
    min_side=16,
    sum_threads=128,
    sum_step=0.4e-6,
    sum_begin=1.2e-9,
    sum_rate=5e12,
    shared_epilogue_min_n=1024,
    im2col_k_tile=0.1e-6,
    im2col_step=0.025e-6,
)

THIN = ThinTimes(
    us_launch=0.5,
    us_latency=0.5,
    us_second_launch=2.0,
    memory_share=0.85,
    load_cycles=2.0,
    l1_bytes=64.0,
    issue_cycles=4.0,
    exposed=0.5,
)

OCCUPANCY = Occupancy(
    injective_threads=512,
    stencil_threads=256,
    rowwise_threads=512,
    split_reduction_threads=2048,
    split_reduction_blocks=4,
    column_reduction_blocks=8,
    column_reduction_bytes=1 << 17,
    carveout_blocks=8,
)

ROWWISE = RowwiseLimits(
    max_lanes=256,
    elements=16,
    more_elements=32,
    many_lanes=128,
    line_bytes=128,
    registers=96,
    max_idle=1 / 8,
    block_threads=128,
    warp_vectors=4,
)

PARALLEL_MATMULS = ParallelMatmuls(tile=128, min_rows=64, min_filled=0.5, max_waves=4)

# Steps of single blocks of 512 and of 2048 keys, heads of 64 to 256, and of as many as SMs hold.
ATTENTION = AttentionTimes(
    warp=AttentionStep(32, 0.1, 5.0, 2.0, 0.6, 0.7, 0.0156),
    warpgroup=AttentionStep(64, 0.14, 1.6, 1.06, 0.6, 0.7, 0.0156),
    warp_specialized=AttentionStep(128, 0.35, 0.8, 0.5, 1.0, 0.0, 0.02),
    exponentials_per_clock=16,
    us_per_combine=2.3,
    us_per_part=0.03,
    combine_bytes_per_us=8e6,
    split_max=64,
    split_unknown=16,
)
