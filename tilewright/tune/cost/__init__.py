"""Cost models: what a candidate will cost, guessed from those that were measured."""
