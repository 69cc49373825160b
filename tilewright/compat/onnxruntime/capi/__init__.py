"""The inner modules of ONNX Runtime that applications import from."""
