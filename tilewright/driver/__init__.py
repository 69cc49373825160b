"""compile(): the pass lists, kernels, the model's native main, explanations."""
