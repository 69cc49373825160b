"""Classical machine learning: tree ensembles, pairwise coupling."""
