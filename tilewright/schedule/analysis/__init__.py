"""Analysis that schedules start from: blocks, GEMM axes, dataflow, bounds."""
