"""Layout assignment by minimum cut, and sinking of reshapes and transposes."""
