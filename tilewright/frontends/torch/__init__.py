"""PyTorch modules → Graph. Only this package imports torch, and only when it is used."""
