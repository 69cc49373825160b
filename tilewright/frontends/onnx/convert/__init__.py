"""From ONNX operators to ours: one file a family, each with a literal table `CONVERTERS`."""
