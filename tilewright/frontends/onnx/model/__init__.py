"""Reading and validating a model file: protobuf, tensors, dimensions."""
