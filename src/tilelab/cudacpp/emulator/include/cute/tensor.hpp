#error "CuTe kernels cannot run in emulation: they need a GPU, and nvcc to build them"
