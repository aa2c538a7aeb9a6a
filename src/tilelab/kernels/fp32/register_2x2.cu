// 2×2 outputs a thread: a block of 16×16 threads computes 32×32 outputs.
// Adds:   registers as a second tile; four multiply-adds for four shared loads instead of one for two.
// Bound:  the shared memory pipe, half as much.
// Limits: any M, N, K (edges are filled with zeros).
// C (M×N) = A (M×K) · B (K×N)
constexpr int THREADS = 16;       // a side of the block
constexpr int TILE = 2 * THREADS; // a side of its outputs

extern "C" __global__ void __launch_bounds__(THREADS * THREADS)
matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float tileA[TILE][THREADS];
    __shared__ float tileB[THREADS][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row0 = blockIdx.y * TILE, column0 = blockIdx.x * TILE;

    float sum[2][2] = {};
    for (int start = 0; start < K; start += THREADS) {
        for (int i = 0; i < 2; ++i) {
            // Outputs of a thread lie 16 apart, so that neighbours still load and store neighbours.
            const int row = row0 + ty + i * THREADS, column = column0 + tx + i * THREADS;
            tileA[ty + i * THREADS][tx] = row < M && start + tx < K ? A[(size_t)row * K + start + tx] : 0.0f;
            tileB[ty][tx + i * THREADS] = start + ty < K && column < N ? B[(size_t)(start + ty) * N + column] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < THREADS; ++k) {
            const float a0 = tileA[ty][k], a1 = tileA[ty + THREADS][k];
            const float b0 = tileB[k][tx], b1 = tileB[k][tx + THREADS];
            sum[0][0] += a0 * b0;
            sum[0][1] += a0 * b1;
            sum[1][0] += a1 * b0;
            sum[1][1] += a1 * b1;
        }
        __syncthreads();
    }
    for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
            const int row = row0 + ty + i * THREADS, column = column0 + tx + j * THREADS;
            if (row < M && column < N) C[(size_t)row * N + column] = sum[i][j];
        }
}
