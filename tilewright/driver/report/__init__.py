"""Everything that only reports: explain, dumps, HTML, roofline."""
