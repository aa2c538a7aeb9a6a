"""The ladder of matmul kernels, one .cu file a rung."""
