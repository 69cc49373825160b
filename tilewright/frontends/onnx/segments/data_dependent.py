"""Errors for what is data-dependent: a node whose meaning is known only when the model runs.

The importer raises them, and the driver then compiles the model in segments: see `partition`.
"""

from __future__ import annotations

from tilewright.core.errors import NOWHERE, Loc, UnsupportedError


class DataDependent(UnsupportedError):
    """A part of a model that can be compiled only after what comes before it has run."""


class HostOnly(DataDependent):
    """A node that no loop program can express; `segments.host` has a function for it."""

    def __init__(self, op: str, loc: Loc = NOWHERE) -> None:
        super().__init__("onnx.host", f"{op} runs on the host, between native segments", loc=loc)


class NeedsConcreteValue(DataDependent):
    """A node whose meaning depends on the value of an input that is not known at compile time.

    `value` is the input's ONNX name in the graph of the node. With `sizes`, symbols suffice for
    its elements; otherwise they must be numbers.
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


class NeedsConcreteSizes(DataDependent):
    """A node whose result has a form that follows from sizes which are not known yet."""

    def __init__(self, op: str, what: str, loc: Loc = NOWHERE) -> None:
        super().__init__(
            "onnx.sizes",
            f"{op}: {what}",
            loc=loc,
            help="compile it with tw.compile, which makes segments, or give the sizes with dims=",
        )
