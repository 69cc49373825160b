"""What a row of the table of methods is: data only, checked by `tests/methods`.

The state follows from the row: without files nothing is built, with something missing it is partly
built. So no row can claim more than it names.
"""

from __future__ import annotations

from typing import Literal

from tilewright.core.node import node

State = Literal["built", "partly", "not built"]


@node
class MethodResult:
    """What the experiment last gave. Every number of `text` occurs in the file `source`."""

    text: str
    source: str


@node
class PublishedMethod:
    """A published system, a paper or a classic technique.

    `published` is the year and the venue or the owner. `files` are where the method lives,
    `missing` is what it has and Tilewright has not, `command` runs its experiment.
    """

    name: str
    published: str
    idea: str
    files: tuple[str, ...] = ()
    missing: str = ""
    command: str = ""
    result: MethodResult | None = None

    @property
    def state(self) -> State:
        """How much of the method is there."""
        if not self.files:
            return "not built"
        return "partly" if self.missing else "built"


@node
class MethodSection:
    """Methods of one kind, in the order of the page."""

    title: str
    about: str
    methods: tuple[PublishedMethod, ...]
