"""CSE, DCE, folding, decomposition, simpler control flow."""
