"""The three intermediate representations: graph, tensor expression, loop."""
