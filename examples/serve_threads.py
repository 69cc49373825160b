"""Serve a model over HTTP, one thread a request.

    python examples/serve_threads.py model.onnx --port 8000

A request is a POST of an `.npz` file that has an array for each input; the answer is one that has
an array for each output:

    body = io.BytesIO()
    np.savez(body, x=np.ones((1, 16), np.float32))
    answer = urllib.request.urlopen("http://127.0.0.1:8000", body.getvalue())
    outputs = np.load(io.BytesIO(answer.read()))

A compiled model may be called from several threads at once; it releases the interpreter's lock
while it runs. With `threads=1` a call uses one core, so that as many calls as cores run at once.
"""

from __future__ import annotations

import argparse
import io
import logging
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

import tilewright as tw

LOG = logging.getLogger("serve_threads")


def main() -> None:
    """Serve until Ctrl-C."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--port", type=int, default=8000, help="0 is one that is free")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(threadName)s: %(message)s")

    with ModelServer(arguments.model, arguments.port) as server:
        print(f"{server.model} on http://127.0.0.1:{server.server_port}", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            print("stopped")


class ModelServer(ThreadingHTTPServer):
    """One compiled model that the threads of all requests call."""

    request_queue_size = 64

    def __init__(self, path: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.model = tw.compile(path, threads=1)


class Handler(BaseHTTPRequestHandler):
    """One request: read the inputs, run the model, write the outputs."""

    server: ModelServer

    def do_POST(self) -> None:
        """Answer with the outputs, or with what is wrong with the inputs."""
        body = io.BytesIO(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        try:
            inputs = dict(np.load(body))
            start = time.perf_counter()
            outputs = self.server.model.run(inputs)
        except (BadZipFile, EOFError, TypeError, ValueError, tw.Error) as error:
            self.send_error(400, explain=str(error))
            return
        LOG.info("%.2f ms", (time.perf_counter() - start) * 1e3)
        answer = io.BytesIO()
        np.savez(answer, **outputs)
        self.send_response(200)
        self.send_header("Content-Length", str(answer.tell()))
        self.end_headers()
        self.wfile.write(answer.getvalue())

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet: `do_POST` says what is of interest."""


if __name__ == "__main__":
    main()
