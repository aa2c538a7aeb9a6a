#error "cooperative_groups.h cannot run in emulation; __syncthreads, __syncwarp and the _sync shuffles can"
