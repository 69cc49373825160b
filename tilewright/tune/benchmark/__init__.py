"""The benchmark of search methods: every method on the same spaces, and the leaderboard."""
