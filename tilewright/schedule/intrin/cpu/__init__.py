"""Instructions of CPUs: AMX, bf16 dot products."""
