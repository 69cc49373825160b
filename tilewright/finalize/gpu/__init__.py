"""Finalization for GPUs: where buffers live, which thread has what, where threads wait."""
