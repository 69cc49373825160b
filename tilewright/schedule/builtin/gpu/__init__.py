"""Built-in schedules for GPUs."""
