"""Special functions: gamma, error, Bessel and Airy functions, orthogonal polynomials."""
