"""A file of a model compiled in a subprocess, so that this process never loads the compiler.

A program that compiles a model mostly runs it for long afterwards. The compiler and what it leaves
in Python's heap take more memory than most models do, and little of that can be returned. The
subprocess writes the compiled model to a file and ends.

It is asked where a request can say everything: for a file, with options that are plain data. Where
the compiler is loaded already nothing would be saved, and the program may have added operators or
passes of its own. An error in the model is raised here as well; if the subprocess fails in any
other way, the model is compiled here.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tilewright.core import errors
from tilewright.core.config import config, is_inherited
from tilewright.core.errors import Error, Loc
from tilewright.core.worker.process import WorkerProcess
from tilewright.core.worker.python_command import can_start_python, python_command
from tilewright.core.worker.serve import serve
from tilewright.driver.options import CompileOptions, no_progress
from tilewright.driver.timings import too_long
from tilewright.target.target import read_target, write_target

# A compilation that takes longer than this is hardly slow because of its process.
MAX_SECONDS = 7 * 24 * 3600.0
_LOG = logging.getLogger(__name__)


def compile_in_subprocess(source: Any, options: CompileOptions, path: Path) -> bool:
    """Have a subprocess write the compiled model to `path`; whether it has done so.

    Raises the error that it finds in the model.
    """
    if not (_is_plain(source, options) and _is_quiet() and can_start_python()):
        return False
    if "tilewright.ir" in sys.modules:  # and with it, maybe, more of the compiler
        return False
    with WorkerProcess(python_command(__name__), starts=1) as worker:
        limit = min(MAX_SECONDS, config().compile_limit_s)
        answer = worker.ask(_request(source, options, path), limit)
    if answer.kind == "timeout" and limit < MAX_SECONDS:
        raise too_long()
    if "error" in answer.reply:
        raise _error_from(answer.reply["error"])
    if answer.failure:
        _LOG.debug("%s is compiled in this process: %s", source, answer.failure)
    return not answer.failure


def _is_plain(source: Any, options: CompileOptions) -> bool:
    """Whether a request can say all that there is to know."""
    watched = options.timings is not None or options.progress is not no_progress
    special = options.records, options.schedules, options.overrides
    is_file = isinstance(source, str | os.PathLike)
    return is_file and not watched and all(x is None for x in special)


def _is_quiet() -> bool:
    """Whether nothing is printed or logged meanwhile, and no switch is set here alone."""
    now = config()
    prints = now.dump or now.print_after or now.time or now.trace_rules
    return is_inherited() and not (prints or _LOG.isEnabledFor(logging.INFO))


def _request(source: Any, options: CompileOptions, path: Path) -> dict[str, Any]:
    return {
        "model": os.fspath(source),
        "to": str(path),
        "target": json.dumps(write_target(options.target)),
        "precision": options.precision,
        "dims": dict(options.dims),
        "disable_passes": options.disable_passes,
        "target_name": options.target_name,
        "checks": options.checks,
    }


def write_compiled(request: Mapping[str, Any]) -> dict[str, Any]:
    """Answer a request: the file is there, or an error in the model."""
    from tilewright.driver.compile_graph import compile_source

    options = CompileOptions(
        read_target(json.loads(request["target"])),
        request["precision"],
        request["dims"],
        tuple(request["disable_passes"]),
        request["target_name"],
        checks=request["checks"],
    )
    try:
        made = compile_source(Path(request["model"]), options)
    except Error as error:
        return {"error": _error_data(error)}
    made.write(Path(request["to"]))
    return {}


def _error_data(error: Error) -> dict[str, Any]:
    """An error as plain data."""
    # of a class that a front end defines the nearest base that the parent can look up
    kind = next(k for k in type(error).__mro__ if k.__name__ in (*vars(errors), "DataDependent"))
    return {
        "kind": kind.__name__,
        "code": error.code,
        "message": error.message,
        "loc": asdict(error.loc),
        "notes": [str(note) for note in error.notes],
        "help": error.help,
    }


def _error_from(data: Mapping[str, Any]) -> Error:
    """The error of `_error_data`."""
    from tilewright.frontends.onnx.segments.data_dependent import DataDependent

    kinds: dict[str, type[Error]] = {**vars(errors), "DataDependent": DataDependent}
    loc, notes, make = Loc(**data["loc"]), tuple(data["notes"]), kinds[data["kind"]]
    return make(data["code"], data["message"], loc=loc, notes=notes, help=data["help"])


def main() -> None:
    """Serve the parent process."""
    serve(write_compiled)
