"""Search over schedules: spaces, strategies, cost models, task schedulers, their benchmark."""
