"""What every layer stands on: nodes, text, errors, registry, config, dtypes, cache."""
