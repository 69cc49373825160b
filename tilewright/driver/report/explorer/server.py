"""A live explorer: the page on this machine, made anew whenever the model's file changes.

/              the page; it asks for `version` every other second, and reloads if it is another
/texts/NAME    the texts of a kernel, made when they are asked for
/version       {"version": how often the model was built, "problem": why it now cannot be}
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any

from tilewright.core.errors import ConfigError, Error
from tilewright.driver.report.explorer.document import ExploredModel, explorer_document
from tilewright.driver.report.explorer.kernel_texts import kernel_texts
from tilewright.driver.report.explorer.page import explorer_page

HOST = "127.0.0.1"


class LiveExplorer:
    """A model that is built again when its file is newer; `make` builds it."""

    def __init__(self, path: Path, make: Callable[[], ExploredModel]) -> None:
        self._path = path
        self._make = make
        self._lock = Lock()
        self._changed = path.stat().st_mtime_ns
        self._shown = _Shown(make())
        self._version = 1
        self._problem = ""

    def answer(self, address: str) -> tuple[str, str] | None:
        """The type and the text of what lies at an address, `None` where nothing does."""
        with self._lock:
            if address == "/":
                return "text/html", self._shown.page
            if address == "/version":
                self._refresh()
                state = {"version": self._version, "problem": self._problem}
                return "application/json", json.dumps(state)
            found = self._shown.text(address.removeprefix("/texts/"))
            return None if found is None else ("application/json", found)

    def _refresh(self) -> None:
        changed = self._path.stat().st_mtime_ns if self._path.exists() else self._changed
        if changed == self._changed:
            return
        self._changed, self._problem = changed, ""
        try:
            self._shown = _Shown(self._make())
            self._version += 1
        except Error as error:  # it may be half written; the page says so, and shows the one before
            self._problem = str(error)


class _Shown:
    """One build of the model: its page, and the texts that were asked for."""

    def __init__(self, model: ExploredModel) -> None:
        self.model = model
        self._texts: dict[str, str] = {}

    @cached_property
    def page(self) -> str:
        document = explorer_document(self.model)
        return explorer_page({**document, "live": True})

    def text(self, name: str) -> str | None:
        build = self.model.build
        steps = {step.kernel.name: step for step in reversed(build.steps)}
        for number, kernel in enumerate(build.distinct_kernels):
            if self.model.text_name(number) == name and name not in self._texts:
                made = kernel_texts(steps[kernel], build.target, build.precision)
                self._texts[name] = json.dumps(made)
        return self._texts.get(name)


def make_server(explorer: LiveExplorer, port: int) -> ThreadingHTTPServer:
    """A server of the explorer; port 0 is any that is free."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = explorer.answer(self.path.partition("?")[0])
            if found is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            kind, body = found[0], found[1].encode()
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            with suppress(ConnectionError):  # a browser that has left wants no answer
                self.end_headers()
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing of each request."""

    try:
        return ThreadingHTTPServer((HOST, port), Handler)
    except OSError as error:
        raise ConfigError(
            "explore.port",
            f"cannot serve on port {port}: {error.strerror or error}",
            help="give another with --port, or 0 for any that is free",
        ) from error
