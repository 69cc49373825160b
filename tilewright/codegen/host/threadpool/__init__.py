"""The thread pool of a compiled model, as LLVM IR."""
