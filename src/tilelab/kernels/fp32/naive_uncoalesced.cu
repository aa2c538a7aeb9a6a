// Naive, uncoalesced: one thread an output, and the fast thread index runs down a column of C.
// Adds:   nothing; this is what "one thread per element" becomes when x is given to the rows.
// Bound:  a warp of a 16×16 block touches 16 rows of A and of C, far apart: 16 passes through L1 where 2 would do.
// Limits: any M, N, K; row-major, contiguous.
// C (M×N) = A (M×K) · B (K×N)
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    const int column = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= M || column >= N) return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k) sum += A[(size_t)row * K + k] * B[(size_t)k * N + column];
    C[(size_t)row * N + column] = sum;
}
