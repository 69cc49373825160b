"""What calls need of torch, which is never imported here: who has tensors has imported it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TorchCuda:
    """Streams, memory and captures of torch's on the GPU of that number."""

    def __init__(self, torch: Any, number: int = 0) -> None:
        self.number = number
        self.grad_enabled = torch.is_grad_enabled
        self.capturing = torch.cuda.is_current_stream_capturing
        self._torch = torch
        # As code of Inductor's: these take 2 us, what is public 10.
        self._stream = torch._C._cuda_getCurrentRawStream
        self._empty = torch._C._dynamo.guards._empty_strided_cuda
        self._others = torch.cuda.device_count() > 1

    def stream(self) -> int:
        """The current stream."""
        return int(self._stream(self.number))

    def empty(self, shape: Sequence[int], strides: Sequence[int], dtype: Any) -> Any:
        """A tensor of unspecified content on the current GPU, in memory of its current stream."""
        return self._empty(shape, strides, dtype)

    def is_elsewhere(self) -> bool:
        """Whether torch's current GPU is another one."""
        return self._others and bool(self._torch.cuda.current_device() != self.number)

    def selected(self) -> Any:
        """A context in which this is torch's current GPU."""
        return self._torch.cuda.device(self.number)

    def is_tensor(self, value: Any) -> bool:
        """Whether a value is a tensor, wherever it is."""
        return isinstance(value, self._torch.Tensor)

    def gpu_of(self, tensor: Any) -> int | None:
        """The number of the GPU on which a tensor is; `None` if it is on none."""
        return int(tensor.device.index) if tensor.is_cuda else None

    def is_strided(self, tensor: Any) -> bool:
        """Whether a tensor is dense memory with strides."""
        return bool(tensor.layout == self._torch.strided)

    def from_dlpack(self, array: Any) -> Any:
        """An array of another library on the GPU as a tensor."""
        return self._torch.from_dlpack(array)

    def dtype(self, name: str) -> Any:
        """Torch's element type of this name, which is NumPy's; `None` if it has none."""
        return getattr(self._torch, name, None)
