"""A fused group of operators → one tensor program → one loop function."""
