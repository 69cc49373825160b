"""The roofline model: measured peaks of this machine."""
