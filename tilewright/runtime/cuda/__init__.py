"""Models on NVIDIA GPUs, by the driver alone: no toolkit and no other library is needed."""
