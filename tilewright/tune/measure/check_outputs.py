"""Whether a candidate computed what it should."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tilewright.core.numeric_error import array_error
from tilewright.runtime.binding import Port


def wrong(
    ports: Sequence[Port],
    got: Sequence[np.ndarray],
    wanted: Sequence[np.ndarray],
    tolerance: Mapping[str, float],
) -> str:
    """What is wrong with the outputs of a model; empty if nothing is.

    A difference counts relative to the largest magnitude of its output. NaN and infinities have to
    be where they are expected.
    """
    if len(got) != len(wanted):
        return f"{len(got)} outputs, {len(wanted)} expected"
    for port, ours, theirs in zip(ports, got, wanted, strict=True):
        if ours.shape != theirs.shape:
            return f"{port.name} has shape {list(ours.shape)}, expected {list(theirs.shape)}"
        error, allowed = array_error(ours, theirs), tolerance.get(port.dtype.name, 0.0)
        if error > allowed:
            return f"{port.name} is off by {error:.2g}, allowed is {allowed:.2g}"
    return ""
