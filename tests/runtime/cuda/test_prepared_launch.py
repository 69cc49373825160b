from __future__ import annotations

import ctypes
from typing import Any

from tilewright.runtime.cuda.driver_structs import EARLY, KernelNodeParams, LaunchConfig
from tilewright.runtime.cuda.kernel_args import Arguments
from tilewright.runtime.cuda.prepared_launch import PreparedLaunch


def _no_matrix(*about: Any) -> Any:
    raise AssertionError("there are none")


def test_structs_are_made_once() -> None:
    prepared = PreparedLaunch(9, (7, 64, 128), Arguments([5, 0]), "softmax", EARLY)
    for stream in (0, 11):
        found = prepared.config(stream)._obj
        assert isinstance(found, LaunchConfig)
        assert (found.grid_x, found.block_x, found.shared, found.count) == (7, 64, 128, 1)
        assert (found.stream or 0) == stream
    node = prepared.node(_no_matrix)._obj
    assert isinstance(node, KernelNodeParams)
    assert prepared.node(_no_matrix)._obj is node
    prepared.arguments.words[0] = 6
    first = ctypes.c_void_p.from_address(node.arguments).value
    assert ctypes.c_int64.from_address(first).value == 6
