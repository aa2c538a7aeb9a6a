#error "tensor cores (mma.h, WMMA) cannot run in emulation: they need a GPU"
