"""Serve a model over HTTP, one thread a request.

    python examples/serve_threads.py model.onnx
    curl http://127.0.0.1:8000 --data '{"x": [[0.5, 1.0, -1.0]]}'

A request has the inputs as JSON, by name; the answer has the outputs.

A compiled model may be called from several threads at once; it releases the interpreter's lock
while it runs. With `threads=1` a call uses one core, so that as many calls as cores run at once.
"""

from __future__ import annotations

import argparse
import json
import logging
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

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
        model = self.server.model
        try:
            given = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
            inputs = {p.name: np.array(given[p.name], p.dtype.numpy) for p in model.inputs}
            start = time.perf_counter()
            outputs = model.run(inputs)
        except (KeyError, TypeError, ValueError, tw.Error) as error:
            self.send_error(400, explain=f"{type(error).__name__}: {error}")
            return
        LOG.info("%.2f ms", (time.perf_counter() - start) * 1e3)
        answer = json.dumps({name: array.tolist() for name, array in outputs.items()}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Keep quiet: `do_POST` says what is of interest."""


if __name__ == "__main__":
    main()
