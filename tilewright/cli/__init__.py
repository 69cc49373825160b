"""The command line: one command a file, and what the commands share."""
