"""The ring: every method on the same spaces with many seeds, and the leaderboard."""
