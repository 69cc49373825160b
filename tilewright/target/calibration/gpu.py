"""Measured figures of GPUs: times of GEMM tiles, and thresholds of the built-in schedules.

One instance for each GPU that was measured, `sm_90a.py`. Times are microseconds, rates bytes a
second. A field marked *fitted* was chosen for the models or shapes named, and is to be replaced by
a formula over the target.
"""

from __future__ import annotations

from math import inf

from tilewright.core.node import node


@node
class TensorCoreTileTime:
    """A tile on tensor cores, by the names of `TensorCoreTile`, and the time of its k-tile."""

    block_m: int
    block_n: int
    warps_m: int
    warps_n: int
    stages: int
    blocks_per_sm: int
    us_per_k_tile: float
    us_per_k_tile_im2col: float = inf
    wgmma: bool = False
    m_repeats: int = 1
    consumer_groups: int = 1


@node
class SimtTileRate:
    """A tile on FMA units, by the names of `SimtTile`: its rate, and what copies take besides."""

    block_m: int
    block_n: int
    block_k: int
    threads_m: int
    threads_n: int
    blocks_per_sm: int
    rate: float
    k_major: float
    transposed: float


@node
class TensorCoreTimes:
    """GEMMs on tensor cores: the time of a k-tile of each tile, and of what is around them.

    TMA starts slower than copies by threads: an SM must have more than `tma_min_k_tiles`, and the
    pipeline at most `tma_max_stages`. Where threads copy tiles that are not full, a k-tile takes
    `edge_factor` as long. Before the first product, copies take the time of `fill_k_tiles`.

    The L2 gives an SM so many bytes a microsecond of rows that begin with a sector, as other SMs
    ask for the same ones (`l2_bytes_per_us`), and of rows that begin within a sector
    (`l2_across_bytes_per_us`). Of up to half of the SMs, each takes `l2_half_share` of that time.

    `us_per_epilogue_call` is of a transcendental function, for each element of a thread;
    `us_per_store` of an element of the result; `us_per_wave` of each wave after the first;
    `us_per_launch` of the launch that adds up split-K, at `split_k_bytes_per_us`.

    Persistent kernels start `us_persistent_start` later. With ping-pong, an epilogue call takes
    `us_per_pingpong_call` beside the mainloop of the other group, which hides part of the stores:
    `pingpong_stores` of them are left; a group without another takes `pingpong_alone` times as
    long. Stream-K hands over partial sums: `us_per_fixup_element`, and `us_per_fixup_part` for each
    part of a tile; beyond `stream_k_max_tiles` an SM, blocks no longer read the same operands at a
    time, and together these exceed the L2. Each of these schedulers has tiles of its own:
    `multistage` (one tile a block), `persistent`, `stream_k`.
    """

    multistage: tuple[TensorCoreTileTime, ...]
    persistent: tuple[TensorCoreTileTime, ...]
    stream_k: tuple[TensorCoreTileTime, ...]
    tma_min_k_tiles: int
    tma_max_stages: int
    edge_factor: float
    fill_k_tiles: float
    l2_bytes_per_us: float
    l2_across_bytes_per_us: float
    l2_half_share: float
    us_per_epilogue_call: float
    us_per_store: float
    us_per_wave: float
    us_per_launch: float
    split_k_bytes_per_us: float
    us_persistent_start: float
    us_per_pingpong_call: float
    pingpong_stores: float
    pingpong_alone: float
    us_per_fixup_element: float
    us_per_fixup_part: float
    stream_k_max_tiles: int


@node
class SimtTimes:
    """GEMMs on FMA units, in seconds: rates of tiles, and of what is around them.

    A tile reaches `few_warps_factor` of its rate where an SM has at most `few_warps` warps for its
    `schedulers`. A word of an operand takes as many FMAs as `word` says where it is copied by
    itself, `ragged_word` where the threads are no whole rows of a tile. One of a window takes
    `placed_word` where its place is that of a whole k-tile, and `window_word` otherwise. All SMs
    copy `vector_rate` bytes a second, of K-major operands beyond the L2 `k_major_rate` by k-tiles
    of `k_major_step`, and `transposed_rate` word by word. A wave's prologue and epilogue take
    `wave`, the launch that adds up split-K takes `launch`, at `split_k_rate` bytes a second, one
    that transposes an operand `transpose_launch`, at `transpose_rate`.

    A GEMM with fewer than `min_side` rows or columns may be faster as a reduction for each element,
    by `sum_threads` threads: `sum_step` for what each of them reads in turn, `sum_begin` for the
    start of a block, `sum_rate` bytes a second.
    """

    tiles: tuple[SimtTileRate, ...]
    few_warps_factor: float
    few_warps: int
    schedulers: int
    word: float
    ragged_word: float
    placed_word: float
    window_word: float
    vector_rate: float
    k_major_rate: float
    k_major_step: int
    transposed_rate: float
    wave: float
    launch: float
    split_k_rate: float
    transpose_launch: float
    transpose_rate: float
    min_side: int
    sum_threads: int
    sum_step: float
    sum_begin: float
    sum_rate: float
    # Fitted to gpt2 and vit_b16, batch 32: the columns from which on an epilogue through shared
    # memory is faster, where rows of the result are not aligned. 50257 columns gain 8 %; 197, with
    # a mask and K = 64, take 1.8 times as long.
    shared_epilogue_min_n: int
    # The least that a k-tile of windows takes, and each of its steps: 0.44 us of 16, 0.29 us of 8.
    im2col_k_tile: float
    im2col_step: float


@node
class ThinTimes:
    """Products of few rows: launches, a wait for memory, and what it gives of its peak rate.

    A line that a warp loads takes the L1 `load_cycles`, or as long as `l1_bytes` a cycle take. A
    warp alone issues an instruction every `issue_cycles`. Of waits, work in an SM and memory, the
    longest hides all but a share of the others, which is `exposed`.
    """

    us_launch: float
    us_latency: float
    us_second_launch: float
    memory_share: float
    load_cycles: float
    l1_bytes: float
    issue_cycles: float
    exposed: float


@node
class Occupancy:
    """Threads, or thread blocks, of an SM that keep it busy, for each kind of kernel.

    With fewer than `injective_threads`, `stencil_threads` or `rowwise_threads`, more threads are
    better than more work for each. Split reductions have at most `split_reduction_threads`, or
    `split_reduction_blocks`; reductions down columns `column_reduction_blocks`, so that some load
    while others reduce, and threads that together read `column_reduction_bytes` at once. An SM
    changes its split of L1 cache and shared memory (the carveout) only when idle: launches of at
    most `carveout_blocks` keep that of the launch before.

    All are fitted to the benchmark models.
    """

    injective_threads: int
    stencil_threads: int
    rowwise_threads: int
    split_reduction_threads: int
    split_reduction_blocks: int
    column_reduction_blocks: int
    column_reduction_bytes: int
    carveout_blocks: int


@node
class RowwiseLimits:
    """How rows are distributed over threads.

    A row has at most `max_lanes` threads to keep the GPU busy, or if its length is unknown; a block
    of several short rows has `block_threads`. A thread has `elements` of a row, or `more_elements`
    where there would be more than `many_lanes` lanes, which need barriers, or where a row is read
    once. The lanes of a row read `line_bytes` at a time. Arrays of a row take at most `registers`
    of a thread. At most `max_idle` of the threads have no row.
    """

    max_lanes: int
    elements: int
    more_elements: int
    many_lanes: int
    line_bytes: int
    registers: int
    max_idle: float
    # Fitted to layer norms of 196608 rows of 128: 26.3 us with 128 threads, 26.6 with 256 or 512.
    block_threads: int
    # Fitted: the most vectors of a lane with which one warp is faster than two. Layer norms of 4096
    # rows of 768 f16 take 7.2 us with one warp, 8.9 with two; softmax of 8192 rows of 1000 f32,
    # eight vectors, 17.9 and 17.0.
    warp_vectors: int


@node
class ParallelMatmuls:
    """Where matmuls of one value are faster as one (`passes/algebra/combine_parallel_matmuls.py`).

    On tensor cores, from `min_rows` rows on; 1 and 37 rows lose 1 to 2 %. On CUDA cores, where the
    tiles of all fill `min_filled` of the SMs, and one matmul has fewer than `max_waves` waves: of
    many waves, all but the last are full anyway. `tile` is the side of the tiles that are counted.

    Fitted to vit_b16, batch 1, which takes a fifth longer below `min_filled`.
    """

    tile: int
    min_rows: int
    min_filled: float
    max_waves: int


@node
class AttentionStep:
    """A step of attention, of some rows and keys, and what is around all steps of a block.

    With `rows`, a block that has an SM to itself takes `us` and multiples of the time that its
    products and exponentials take at full rate, in a `share` of which no other block goes on.
    Around the steps of blocks that run at a time are `us_around`, and `us_per_column` of each block
    for the columns of queries that are read and results that are written.
    """

    rows: int
    us: float
    products: float
    exponentials: float
    share: float
    us_around: float
    us_per_column: float


@node
class AttentionTimes:
    """Times of attention, by what multiplies: warps, a warpgroup, or warp-specialized kernels.

    See `schedule/builtin/gpu/attention_cost.py`. A warp has sixteen rows, and takes as long beside
    others of its block. Combining parts takes `us_per_combine` and `us_per_part`, and the time of
    their bytes. A row's keys are split over at most `split_max` blocks, or `split_unknown` where
    their number is unknown.
    """

    warp: AttentionStep
    warpgroup: AttentionStep
    warp_specialized: AttentionStep
    exponentials_per_clock: int
    us_per_combine: float
    us_per_part: float
    combine_bytes_per_us: float
    split_max: int
    split_unknown: int
