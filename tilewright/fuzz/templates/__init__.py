"""The grammar of random graphs: templates of nodes."""
