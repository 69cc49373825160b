"""What the package logs, under the name `tilewright` of the standard `logging`.

Modules log by `logging.getLogger(__name__)`: compilations, loads, graph breaks and rounds of tuning
at INFO; each pass, the schedule rule of each kernel and each use of the cache at DEBUG. An
application sets levels and handlers as for any library; `TW_LOG=info` shows the log on standard
error without a line of code.
"""

from __future__ import annotations

import logging

from tilewright.core.config import config

ROOT = logging.getLogger("tilewright")
_FORMAT = "%(asctime)s %(name)s %(levelname)s: %(message)s"


def show_log() -> None:
    """Show the log on standard error from the level that the switches ask for, if they do."""
    level = config().log
    if not level or any(isinstance(h, logging.StreamHandler) for h in ROOT.handlers):
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(_FORMAT))
    ROOT.addHandler(handler)
    ROOT.setLevel(level.upper())
