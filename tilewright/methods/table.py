"""The one table of published methods, of which `docs/methods.md` and `tilewright list` are made."""

from __future__ import annotations

from tilewright.methods.compilers import COMPILER_METHODS
from tilewright.methods.formats import FORMAT_METHODS
from tilewright.methods.frameworks import FRAMEWORK_METHODS
from tilewright.methods.graphs_sparse import GRAPH_METHODS
from tilewright.methods.kernels import KERNEL_METHODS
from tilewright.methods.method import MethodSection, PublishedMethod
from tilewright.methods.techniques import TECHNIQUE_METHODS
from tilewright.methods.tuning import TUNING_METHODS

SECTIONS: tuple[MethodSection, ...] = (
    TUNING_METHODS,
    FRAMEWORK_METHODS,
    COMPILER_METHODS,
    GRAPH_METHODS,
    FORMAT_METHODS,
    KERNEL_METHODS,
    TECHNIQUE_METHODS,
)
METHODS: tuple[PublishedMethod, ...] = tuple(m for section in SECTIONS for m in section.methods)
