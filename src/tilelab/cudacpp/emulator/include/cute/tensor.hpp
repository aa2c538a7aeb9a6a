#error "CuTe is not emulated"
