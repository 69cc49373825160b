"""Training without a framework: a model, a loss and an optimizer as one compiled step."""
