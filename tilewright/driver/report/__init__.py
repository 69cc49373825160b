"""Everything that only reports: explain, dumps, the explorer, roofline."""
