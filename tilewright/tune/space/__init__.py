"""What is searched: spaces of candidates, each a sequence of decisions."""
