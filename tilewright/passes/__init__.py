"""Graph passes, `(graph, context) -> graph`: one pass a file, in folders by theme."""
