// Naive: one thread an output, neighbours in x compute neighbours in a row of C.
// Adds:   coalescing; a warp reads 128 consecutive bytes of B and one broadcast word of A.
// Bound:  two loads for each multiply-add, answered by the caches: the load units, not DRAM.
// Limits: any M, N, K; row-major, contiguous.
// C (M×N) = A (M×K) · B (K×N)
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= M || column >= N) return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
