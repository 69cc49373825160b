"""Where ONNX Runtime defines what its package shows: sessions and values."""

from __future__ import annotations

from tilewright.compat.onnxruntime.devices import OrtDevice
from tilewright.compat.onnxruntime.enums import OrtDeviceVendorId
from tilewright.compat.onnxruntime.iobinding import IOBinding
from tilewright.compat.onnxruntime.session import InferenceSession
from tilewright.compat.onnxruntime.session import InferenceSession as Session
from tilewright.compat.onnxruntime.values import OrtValue

__all__ = ["IOBinding", "InferenceSession", "OrtDevice", "OrtDeviceVendorId", "OrtValue", "Session"]
