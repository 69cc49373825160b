"""Scheduled loops → plain loops that code generation accepts."""
