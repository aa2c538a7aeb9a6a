"""A CUDA C++ source as a value: built, and run on the GPU or emulated on the CPU."""
