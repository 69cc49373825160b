"""The command line: what the commands share."""
