"""Where in the user's source a node of a graph comes from."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch.fx import Node

from tilewright.core.errors import Loc

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
_TORCH = str(Path(torch.__file__).parent)


def place_of(node: Node) -> Loc:
    """The innermost line that is not torch's own, or the name alone where none is recorded."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not frame[0].startswith(_TORCH)] or frames
    if not own:
        return Loc(node=node.name)
    file, line = own[-1]
    return Loc(file, node.name, int(line))
