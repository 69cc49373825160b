"""Which pass, fusion or schedule first changes a model's results."""
