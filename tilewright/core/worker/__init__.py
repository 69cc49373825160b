"""Worker processes: requests in, replies or failures out, whatever happens inside them."""
