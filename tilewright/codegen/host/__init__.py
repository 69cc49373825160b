"""The native program around the kernels: plan, calls, arena, loops, clock."""
