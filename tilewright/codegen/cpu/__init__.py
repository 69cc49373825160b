"""What only code for CPUs has: parallel loops."""
