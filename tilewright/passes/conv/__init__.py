"""Rewrites of convolutions: Winograd, padding, groups, separable resizes."""
