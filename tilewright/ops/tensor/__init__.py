"""Creation, manipulation, slicing, indexing and sorting of tensors."""
