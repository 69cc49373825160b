"""Plain loops to LLVM text, and LLVM text to objects."""
