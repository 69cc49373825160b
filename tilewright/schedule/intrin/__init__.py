"""Instructions: the loops that one computes, and the text that it is emitted as."""
