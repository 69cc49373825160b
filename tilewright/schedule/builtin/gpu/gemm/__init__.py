"""GEMM on GPUs: tensor cores, SIMT, tile tables."""
