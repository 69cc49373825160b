"""Instructions of NVIDIA GPUs: mma, wgmma, TMA, shuffles."""
