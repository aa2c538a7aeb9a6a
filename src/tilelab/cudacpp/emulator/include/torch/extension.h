#error "PyTorch host code is not emulated"
