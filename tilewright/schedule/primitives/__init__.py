"""One file a primitive: a pure function from a loop function and its arguments to a new one."""
