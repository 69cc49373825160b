"""LLVM text to object code, in this process and in workers."""
