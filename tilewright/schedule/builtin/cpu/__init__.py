"""Built-in schedules for CPUs."""
