"""The graph IR: operators on tensors, SSA, acyclic."""
