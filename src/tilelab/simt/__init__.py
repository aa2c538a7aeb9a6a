"""The simulated GPU for kernels written in Python."""
