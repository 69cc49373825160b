"""A launch with the structs that the driver reads, made once for many launches.

Its words may change between them. The driver copies all that it is given before a call returns.
"""

from __future__ import annotations

import ctypes

from tilewright.runtime.cuda import driver_structs
from tilewright.runtime.cuda.driver_structs import Shape
from tilewright.runtime.cuda.kernel_args import Arguments, Describe


class PreparedLaunch:
    """A kernel, the blocks, threads and shared bytes of its launch, and its arguments."""

    def __init__(
        self,
        function: int,
        shape: Shape,
        arguments: Arguments,
        name: str,
        attribute: int | None = None,
    ) -> None:
        """`attribute` is one of a launch in `driver_structs`, if it has one."""
        self.function = function
        self.shape = shape
        self.arguments = arguments
        self.name = name
        self.attribute = attribute
        self._config = driver_structs.launch(shape, attribute)
        self._config_at = ctypes.byref(self._config)
        self._node: driver_structs.KernelNodeParams | None = None
        self._node_at: object = None

    def config(self, stream: int) -> object:
        """How it is launched in a stream."""
        self._config.stream = stream
        return self._config_at

    def node(self, describe: Describe) -> object:
        """How it is a node of a graph."""
        given = self.arguments.pointers(describe)
        if self._node is None:
            self._node = driver_structs.node(self.function, self.shape, given)
            self._node_at = ctypes.byref(self._node)
        return self._node_at
