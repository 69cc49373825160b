"""Every error a user can see: one class a stage, one text form.

    ScheduleError[split.factor]: cannot split loop i by 0
      --> resnet50.onnx, node Conv_12    in split("i", 0)
      help: use a factor of at least 1

The text is built in `__str__` only: a search throws these by the thousand and never prints them.
"""

from __future__ import annotations

from tilewright.core.node import node


@node
class Loc:
    """Where something came from: a model file and node, or a line of text IR."""

    file: str = ""
    node: str = ""
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        where = self.file
        if self.line:
            where += f":{self.line}:{self.column}" if self.column else f":{self.line}"
        if self.node:
            where += f"{', ' if where else ''}node {self.node}"
        return where


NOWHERE = Loc()


class Error(Exception):
    """A mistake in what the user gave us; `code` names it, `help` says what to do.

    A note is anything that has a text, which is asked for only when the error is printed.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        loc: Loc = NOWHERE,
        notes: tuple[object, ...] = (),
        help: str = "",
    ) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.loc = loc
        self.notes = notes
        self.help = help

    def at(self, loc: Loc) -> Error:
        """This error with a location, if it has none yet; returns itself, to be raised."""
        if self.loc == NOWHERE:
            self.loc = loc
        return self

    def __str__(self) -> str:
        lines = [f"{type(self).__name__}[{self.code}]: {self.message}"]
        if self.loc != NOWHERE:
            lines.append(f"  --> {self.loc}")
        lines += [f"  {note}" for note in self.notes]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class FrontendError(Error):
    """A model that cannot be read."""


class ParseError(FrontendError):
    """Text that is not what its grammar says, with line and column."""


class TypeCheckError(Error):
    """Operands whose types or shapes do not fit an operator."""


class VerifyError(Error):
    """An IR that breaks its own rules."""


class PassError(Error):
    """A pass that cannot do its work."""


class ScheduleError(Error):
    """An illegal schedule step."""


class LegalityError(ScheduleError):
    """A step that would violate a data dependence."""


class LoweringError(Error):
    """A group of operators that cannot become loops."""


class CodegenError(Error):
    """Loops that cannot become machine code."""


class ExecutionError(Error):
    """A compiled model that cannot be loaded or run."""


# What a check of divisors reports for a size: an empty dimension has the size 0.
DIVISOR_SIZE = -1


def index_outside(
    index: int, size: int, node: str = "", notes: tuple[str, ...] = ()
) -> ExecutionError:
    """An index for which a dimension has no element, or a divisor that is 0."""
    if size == DIVISOR_SIZE:
        help = 'checks="off" gives 0 instead'
        return ExecutionError(
            "run.division", "integer division by zero", loc=Loc(node=node), notes=notes, help=help
        )
    message = f"index {index} is outside a dimension of {size}"
    help = 'checks="off" takes the nearest element instead'
    return ExecutionError("run.index", message, loc=Loc(node=node), notes=notes, help=help)


class TuneError(Error):
    """A search that cannot go on."""


class ConfigError(Error):
    """A wrong option, switch or environment."""


class UnsupportedError(Error):
    """Something that is not supported; the message says what is."""


class InternalError(Error):
    """A defect of the compiler itself."""
