"""Tilewright behind the interfaces of other engines."""
