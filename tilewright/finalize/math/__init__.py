"""Mathematical functions written out in primitive expressions, so that they vectorise."""
