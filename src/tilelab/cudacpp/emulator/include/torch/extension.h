#error "PyTorch host code cannot run in emulation: give Kernel the __global__ function alone"
