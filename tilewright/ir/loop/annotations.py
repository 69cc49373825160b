"""The annotations of loops and functions: what a schedule asks of the passes behind it.

    for b in grid(768) {persistent=132, min_blocks_per_sm=1} {
      for k in serial(64) {pipeline_stages=5, warp_specialized=1} { ... }
    }

An annotation changes how a loop runs, never what it computes. `ANNOTATIONS` has them all, by the
key that the text shows; `verify` refuses any other.
"""

from __future__ import annotations

from tilewright.core.node import node
from tilewright.ir.loop.nodes import Block, For, Func


@node
class Annotation:
    """A key whose value is an integer, or a text; `meaning` says what it asks for."""

    key: str
    meaning: str

    def is_on(self, node: For | Block | Func) -> bool:
        """Whether a loop, block or function has it."""
        return any(key == self.key for key, _ in node.annotations)

    def of(self, node: For | Block | Func) -> int:
        """Its value, 0 where it is absent."""
        return next((int(value) for key, value in node.annotations if key == self.key), 0)

    def note(self, value: int = 1) -> tuple[str, int]:
        """The pair that a node carries."""
        return self.key, value


# GPU: on grid loops and on loops around them.
PERSISTENT = Annotation(
    "persistent",
    "A grid loop runs as a persistent kernel: this many blocks loop over its iterations.",
)
STREAM_K = Annotation(
    "stream_k",
    "A grid loop runs as stream-K: at most this many blocks get equal numbers of the k-tiles of "
    "all iterations, and add up the partial tiles at their ends.",
)
PINGPONG = Annotation(
    "pingpong",
    "This many consumer warpgroups of a persistent block take its tiles in turn: with two, one "
    "runs its epilogue while the other multiplies.",
)
MIN_BLOCKS_PER_SM = Annotation(
    "min_blocks_per_sm",
    "The registers of a thread are limited so that this many blocks of a grid loop fit on an SM.",
)
GRID_SYNC = Annotation(
    "grid_sync",
    "A serial loop around grid loops is one cooperative launch with a grid-wide barrier in each "
    "iteration.",
)

# GPU: on the mainloop of a block.
PIPELINE_STAGES = Annotation(
    "pipeline_stages",
    "The shared buffers of a loop get this many stages, and its copies run ahead of their readers.",
)
ROLLED = Annotation(
    "rolled",
    "NVIDIA's assembler does not unroll a loop: its accumulators leave no registers for that.",
)
WARP_SPECIALIZED = Annotation(
    "warp_specialized",
    "Producer warps of their own copy to those stages by TMA; without it, the threads that "
    "compute start the copies.",
)

# CPU: on the loops of tiles.
EDGE_ROWS = Annotation(
    "edge_rows",
    "The rows that are left over by full tiles get tiles of fewer rows, of at least this many.",
)
SHIFT_INWARDS = Annotation(
    "shift_inwards",
    "The last tile of rows is shifted inwards, so that it is full and overlaps the one before.",
)
PARTITION = Annotation(
    "partition",
    "The guards of a loop are worth a copy of it: 1 in the loop itself, 2 in its remainders too.",
)
VERSIONED = Annotation(
    "versioned",
    "Each iteration of a loop tests once whether any guard is needed, and has a version without.",
)
PADDING_LAST = Annotation(
    "padding_last",
    "The iterations of a reduction that only meet padding come last, in a loop without masks.",
)
SKIP_PADDING = Annotation(
    "skip_padding",
    "A loop is left out where all that it reads of a padded copy is padding.",
)
PREFETCH = Annotation(
    "prefetch",
    "Each iteration of a loop prefetches the vectors that it will load so many iterations later.",
)
PREFETCH_ROWS = Annotation(
    "prefetch_rows",
    "The iterations of a loop prefetch what comes in memory after the rows that it loads element "
    "by element: the rows of the next tile.",
)
OUTLINED = Annotation(
    "outlined",
    "A loop is a function of its own: the constants that it keeps in registers leave those of the "
    "loops beside it free.",
)

# On functions.
ALIGNED = Annotation("aligned", "The parameters of a function start at multiples of this number.")
FINITE_WEIGHTS = Annotation(
    "finite_weights",
    "The weights that a function multiplies are finite numbers: zero times one of them is zero.",
)
ATTENTION = Annotation(
    "attention",
    "A function computes attention with these attributes of `fused_attention`, in blocks that a "
    "schedule may choose anew.",
)

ANNOTATIONS = {
    a.key: a
    for a in (
        PERSISTENT,
        STREAM_K,
        PINGPONG,
        MIN_BLOCKS_PER_SM,
        GRID_SYNC,
        PIPELINE_STAGES,
        ROLLED,
        WARP_SPECIALIZED,
        EDGE_ROWS,
        SHIFT_INWARDS,
        PARTITION,
        VERSIONED,
        PADDING_LAST,
        SKIP_PADDING,
        PREFETCH,
        PREFETCH_ROWS,
        OUTLINED,
        ALIGNED,
        FINITE_WEIGHTS,
        ATTENTION,
    )
}
