"""Loading and running compiled models; imports nothing of the compiler."""
