#error "tensor cores (mma.h, wmma) are not emulated"
