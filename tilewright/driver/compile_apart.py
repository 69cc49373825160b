"""A model compiled by a process of its own, so that this one never loads the compiler.

A program that compiles a model mostly runs it for long afterwards. The compiler and what it leaves
in Python's heap take more memory than most models do, and little of that can be returned. The other
process writes the compiled model to a file and is gone.

It compiles what it knows as well as this one does: a file, by options that are plain data. Where
the compiler is loaded here already there is nothing to save, and the program may have added
operators or passes of its own. A model that the other process refuses, or fails at, is compiled
here, and so this process says itself what is wrong with it.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tilewright.core.config import config, is_inherited
from tilewright.core.worker.process import WorkerProcess
from tilewright.core.worker.python_command import can_start_python, python_command
from tilewright.core.worker.serve import serve
from tilewright.driver.options import CompileOptions, no_progress
from tilewright.target.target import read_target, write_target

# A compilation that takes longer than this is hardly slow because of its process.
MAX_SECONDS = 7 * 24 * 3600.0
_LOG = logging.getLogger(__name__)


def compile_apart(source: Any, options: CompileOptions, path: Path) -> bool:
    """Have another process write the compiled model to `path`; whether it has done so."""
    if not (_is_plain(source, options) and _is_quiet() and can_start_python()):
        return False
    if "tilewright.ir" in sys.modules:  # and with it, maybe, more of the compiler
        return False
    with WorkerProcess(python_command(__name__), starts=1) as worker:
        answer = worker.ask(_request(source, options, path), MAX_SECONDS)
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
    """Whether nobody listens to what the compiler says on its way, or has set switches for it."""
    now = config()
    told = now.dump or now.print_after or now.time or now.trace_rules
    return is_inherited() and not (told or _LOG.isEnabledFor(logging.INFO))


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
    """Answer a request: the file is there."""
    from tilewright.driver.compile_graph import compile_source

    options = CompileOptions(
        read_target(json.loads(request["target"])),
        request["precision"],
        request["dims"],
        tuple(request["disable_passes"]),
        request["target_name"],
        checks=request["checks"],
    )
    compile_source(Path(request["model"]), options).write(Path(request["to"]))
    return {}


def main() -> None:
    """Serve the process that has started this one."""
    serve(write_compiled)
