"""Search over schedules: spaces, strategies, cost models, task schedulers, and their ring."""
