"""Gradients and optimizers of the domain ai.onnx.preview.training."""
