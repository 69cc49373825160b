"""Scheduled loops → plain loops that the emitter takes as they are."""
