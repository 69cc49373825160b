"""`tilewright lab`: methods of search compared, and one subcommand a file."""
