"""The faces of other engines on ours, so that what is written for them runs unchanged."""
