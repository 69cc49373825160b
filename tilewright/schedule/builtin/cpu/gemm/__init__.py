"""GEMM on CPUs: register, KC and MC blocking, AMX, bf16 dot products."""
