"""The loop IR: named loops, blocks and tile statements over buffers."""
