"""Control flow: conditionals, loops, dimensions bound at run time."""
