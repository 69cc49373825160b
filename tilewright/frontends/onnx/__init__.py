"""The ONNX front end: models to graphs."""
