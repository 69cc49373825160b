"""Graph → better graph: one pass a file, in folders by theme."""
