#error "tensor maps and TMA (cuda.h) are not emulated"
