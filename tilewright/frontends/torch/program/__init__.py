"""Files that hold a program of torch → what `torch.export` makes of it, nothing in them trusted."""
