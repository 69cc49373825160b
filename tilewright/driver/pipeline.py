"""The passes that a model goes through, in order.

The model's outputs keep their order; their names may change on the way, so whoever needs the names
that the model came with takes them before.
"""

from __future__ import annotations

from difflib import get_close_matches

from tilewright.core.errors import ConfigError
from tilewright.passes.channels_last import channels_last
from tilewright.passes.decompose import decompose
from tilewright.passes.distinct_outputs import distinct_outputs
from tilewright.passes.eliminate_dead import eliminate_dead
from tilewright.passes.eliminate_noop import eliminate_noop
from tilewright.passes.fold_affine import fold_affine
from tilewright.passes.fold_constants import fold_constants
from tilewright.passes.fuse import fuse
from tilewright.passes.infer_types import infer_types
from tilewright.passes.manager import GraphPass
from tilewright.passes.merge_equal import merge_equal
from tilewright.passes.simplify_algebra import simplify_algebra
from tilewright.passes.sink_reshapes import sink_reshapes
from tilewright.passes.sink_transposes import sink_transposes
from tilewright.passes.split_matmuls import split_matmuls
from tilewright.passes.winograd import winograd

GRAPH_PASSES: tuple[GraphPass, ...] = (
    GraphPass("decompose", decompose),
    GraphPass("eliminate_noop", eliminate_noop),
    GraphPass("fold_constants", fold_constants),
    GraphPass("merge_equal", merge_equal),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("simplify_algebra", simplify_algebra),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("channels_last", channels_last),
    GraphPass("sink_reshapes", sink_reshapes),
    GraphPass("split_matmuls", split_matmuls),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("fold_affine", fold_affine),
    GraphPass("winograd", winograd),
    GraphPass("sink_reshapes", sink_reshapes),
    GraphPass("eliminate_dead", eliminate_dead),
    GraphPass("distinct_outputs", distinct_outputs),
    GraphPass("fuse", fuse),
)

# Passes that tools may run besides.
OTHER_PASSES: tuple[GraphPass, ...] = (
    GraphPass("infer_types", infer_types),
    GraphPass("sink_transposes", sink_transposes),
)


def all_passes() -> dict[str, GraphPass]:
    """Every pass by name, in the order in which they first run."""
    found: dict[str, GraphPass] = {}
    for p in (*GRAPH_PASSES, *OTHER_PASSES):
        found.setdefault(p.name, p)
    return found


def find_pass(name: str) -> GraphPass:
    """The pass called `name`, in which `-` is as good as `_`."""
    known = all_passes()
    name = name.replace("-", "_")
    if name not in known:
        near = get_close_matches(name, known, 3) or known
        raise ConfigError(
            "pass.unknown", f"no pass named {name!r}", help=f"one of {', '.join(near)}"
        )
    return known[name]
