"""ONNX models become graphs."""
