"""The command line: what the commands have in common."""
