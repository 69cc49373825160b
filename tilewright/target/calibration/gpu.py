"""What tiles of GEMMs and their surroundings take on a GPU: the data of the tile choosers.

One instance for each GPU that was measured, `sm_90a.py`. Times are microseconds, rates bytes a
second. A field marked *fitted* was chosen for the model named, and is to be replaced by a formula.
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
    consumer_groups: int = 0
    stream_k: bool = False


@node
class SimtTileRate:
    """A tile on FMA units, by the names of `SimtTile`, and its rate compared with the best."""

    block_m: int
    block_n: int
    block_k: int
    threads_m: int
    threads_n: int
    blocks_per_sm: int
    relative_rate: float


@node
class TensorCoreTimes:
    """GEMMs on tensor cores: the time of a k-tile of each tile, and of what is around them.

    TMA starts slower than copies by threads: an SM must have more than `tma_min_k_tiles`, and the
    pipeline at most `tma_max_stages`. Where edge tiles are not full, threads copy them: a k-tile
    takes `edge_factor` as long with one block on an SM, `edge_factor_multi` with more.

    `us_per_epilogue_call` is of a transcendental function, for each element of a thread;
    `us_per_store` of an element of the result; `us_per_wave` of each wave after the first;
    `us_per_launch` of the launch that adds up split-K, at `split_k_bytes_per_us`.

    Persistent kernels start `us_persistent_start` later. With ping-pong, an epilogue call takes
    `us_per_pingpong_call` beside the mainloop of the other group, which hides part of the stores:
    `pingpong_stores` of them are left. Stream-K hands over partial sums: `us_per_fixup_element`,
    and `us_per_fixup_part` for each part of a tile; beyond `stream_k_max_tiles` an SM, blocks no
    longer read the same operands at a time, and together these exceed the L2.
    """

    multistage: tuple[TensorCoreTileTime, ...]
    persistent: tuple[TensorCoreTileTime, ...]
    tma_min_k_tiles: int
    tma_max_stages: int
    edge_factor: float
    edge_factor_multi: float
    us_per_epilogue_call: float
    us_per_store: float
    us_per_wave: float
    us_per_launch: float
    split_k_bytes_per_us: float
    us_persistent_start: float
    us_per_pingpong_call: float
    pingpong_stores: float
    us_per_fixup_element: float
    us_per_fixup_part: float
    stream_k_max_tiles: int


@node
class SimtTimes:
    """GEMMs on FMA units, in seconds: rates of tiles, and of what is around them.

    The best tile reaches `peak_share` of the peak, `few_warps_factor` of that where an SM has at
    most `few_warps` warps for its `schedulers`. A wave's prologue and epilogue take `wave`, the
    launch that adds up split-K takes `launch`, at `split_k_rate` bytes a second.

    A GEMM with fewer than `min_side` rows or columns may be faster as a reduction for each element,
    by `sum_threads` threads: `sum_step` for what each of them reads in turn, `sum_begin` for the
    start of a block, `sum_rate` bytes a second.
    """

    tiles: tuple[SimtTileRate, ...]
    peak_share: float
    few_warps_factor: float
    few_warps: int
    schedulers: int
    wave: float
    launch: float
    split_k_rate: float
    min_side: int
    sum_threads: int
    sum_step: float
    sum_begin: float
    sum_rate: float
    # Fitted on silero_vad, batch 32: a k-tile of an im2col operand whose block has an SM to itself
    # (0.4 to 0.9 us). Several blocks take as much longer.
    im2col_k_tile: float
