"""Where in the user's source a node of a graph comes from."""

from __future__ import annotations

import re
from pathlib import Path

import torch
from torch.fx import Node

from tilewright.core.errors import Loc

_FRAME = re.compile(r'File "([^"]+)", line (\d+)')
# Frames that say nothing of the user's: those of torch, and ours, which follow saved programs.
_OTHERS = (str(Path(torch.__file__).parent), str(Path(__file__).parents[2]))


def place_of(node: Node) -> Loc:
    """The innermost line of the user's, else of torch, or the name alone where none is recorded."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [frame for frame in frames if not frame[0].startswith(_OTHERS)]
    torchs = [frame for frame in frames if frame[0].startswith(_OTHERS[0])]
    if not own and not torchs:
        return Loc(node=node.name)
    file, line = (own or torchs)[-1]
    return Loc(file, node.name, int(line))
