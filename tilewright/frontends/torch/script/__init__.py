"""TorchScript archives → modules that `torch.export` traces: their code is parsed, never run."""
