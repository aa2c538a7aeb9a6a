#error "tensor maps (cuda.h, TMA) cannot run in emulation: they need a GPU"
