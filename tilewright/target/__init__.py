"""What a machine is: the facts that schedules are constructed from."""
