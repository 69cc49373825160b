"""What the operating system says of this machine: caches, features, identity."""
