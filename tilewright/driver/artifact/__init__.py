"""What a saved model holds: manifest, weights, entry point, runtime objects."""
