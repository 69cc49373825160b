"""Memory of torch's that models use between their inputs and outputs: one piece for each stream.

All models that run in a stream share it, since their work is done one after another there; streams
have nothing in common. It grows to what the largest of them needs. What it was before goes back to
torch, which gives it to nobody before the work of that stream is done.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary


class StreamWorkspace:
    """The memory of one stream. `lock` is held until all launches of a call are queued."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self._memory: Any = None
        self._size = 0
        self._address = 0

    def address(self, size: int, allocate: Callable[[int], Any]) -> int:
        """Where at least so many bytes are; `allocate` gives a tensor of them."""
        if size > self._size:
            self._memory = None  # the allocator may use it for the larger one
            self._memory = allocate(size)
            self._size, self._address = size, self._memory.data_ptr()
        return self._address


_OF_STREAMS: WeakValueDictionary[tuple[int, int], StreamWorkspace] = WeakValueDictionary()
_MAKING = threading.Lock()


def workspace_of(device: int, stream: int) -> StreamWorkspace:
    """The workspace of a stream; it lives as long as a model holds it."""
    with _MAKING:
        found = _OF_STREAMS.get((device, stream))
        if found is None:
            found = _OF_STREAMS[device, stream] = StreamWorkspace()
        return found
