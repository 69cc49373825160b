"""Which of several tasks gets the next trials."""
