"""Building and timing candidates in processes of their own, and judging what was timed."""
