"""The tensor-expression IR: what one operator means."""
