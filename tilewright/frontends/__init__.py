"""Models from elsewhere become graphs: one folder a format."""
