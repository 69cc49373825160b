"""Linear algebra: products, einsum, determinants, Fourier transforms."""
