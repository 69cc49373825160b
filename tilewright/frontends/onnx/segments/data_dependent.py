"""Why a model cannot be compiled as a whole: something in it is known only when it runs.

Raised while importing. The driver then compiles the model in segments: see `partition`.
"""

from __future__ import annotations

from tilewright.core.errors import NOWHERE, Loc, UnsupportedError


class Waiting(UnsupportedError):
    """A part of a model that must wait until what comes before it has run."""


class RunsOnHost(Waiting):
    """A node that no loop program can express; `host` has a function for it."""

    def __init__(self, op: str, loc: Loc = NOWHERE) -> None:
        super().__init__("onnx.host", f"{op} runs on the host, between native segments", loc=loc)


class NeedsValue(Waiting):
    """A node whose meaning depends on the value of one of its inputs, which is not known yet.

    `value` is the input's ONNX name where the node stands; its elements may do as `sizes`, each a
    symbol, or else they must be numbers.
    """

    def __init__(
        self, op: str, value: str, what: str, loc: Loc = NOWHERE, sizes: bool = False
    ) -> None:
        super().__init__(
            "onnx.data-dependent",
            f"{op}: {what} ({value}) is known only when the model runs",
            loc=loc,
            help="compile the model with tw.compile, which makes segments, or make it constant",
        )
        self.value = value
        self.sizes = sizes
