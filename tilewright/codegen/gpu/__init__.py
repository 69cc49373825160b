"""Kernels as NVPTX: emission, launches, warp specialization, the plan of a model."""
