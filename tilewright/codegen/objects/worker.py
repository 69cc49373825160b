"""The other end of an `ObjectQueue`: a process that turns modules into object code, one by one.

A request has the `target` as text, the LLVM `text` of a module, and whether it is `optimized`; the
reply has the object file as `code` in base64. Text that LLVM refuses is a failure.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from tilewright.codegen.objects.compile import compile_object
from tilewright.core.worker.serve import serve
from tilewright.target.target import Target, read_target, write_target

MODULE = __name__
"""Whose `main` the process runs."""


def encode_target(target: Target) -> str:
    """A target as requests have it."""
    return json.dumps(write_target(target))


@lru_cache(1)
def decode_target(text: str) -> Target:
    """The target in a request."""
    return read_target(json.loads(text))


def compile_module(request: Mapping[str, Any]) -> dict[str, str]:
    """Answer a request."""
    target = decode_target(request["target"])
    code = compile_object(request["text"], target, request["optimized"])
    return {"code": base64.b64encode(code).decode()}


def main() -> None:
    """Serve the process that has started this one."""
    serve(compile_module)
