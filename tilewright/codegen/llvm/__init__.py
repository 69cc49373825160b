"""LLVM IR emission for any target: builder, types, expressions, statements."""
