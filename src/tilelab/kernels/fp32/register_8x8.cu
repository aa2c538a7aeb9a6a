// 8×8 outputs a thread: 256 threads compute 128×128 outputs.
// Adds:   64 multiply-adds for 16 shared loads; arithmetic outweighs the loads at last.
// Bound:  scalar loads: 16 instructions of 4 bytes where 4 of 16 bytes would do.
// Limits: any M, N, K (edges are filled with zeros).
// C (M×N) = A (M×K) · B (K×N)
constexpr int TILE_M = 128, TILE_N = 128, TILE_K = 8;
constexpr int EACH = 8;                                    // outputs of a thread, each way
constexpr int ACROSS = TILE_N / EACH, DOWN = TILE_M / EACH;  // threads of the block: 16 × 16
constexpr int THREADS = ACROSS * DOWN;

extern "C" __global__ void __launch_bounds__(THREADS)
matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float tileA[TILE_M][TILE_K];
    __shared__ float tileB[TILE_K][TILE_N];
    const int row0 = blockIdx.y * TILE_M, column0 = blockIdx.x * TILE_N;
    const int tx = threadIdx.x % ACROSS, ty = threadIdx.x / ACROSS;

    float sum[EACH][EACH] = {};
    for (int start = 0; start < K; start += TILE_K) {
        for (int i = threadIdx.x; i < TILE_M * TILE_K; i += THREADS) {
            const int row = row0 + i / TILE_K, k = start + i % TILE_K;
            tileA[i / TILE_K][i % TILE_K] = row < M && k < K ? A[(size_t)row * K + k] : 0.0f;
        }
        for (int i = threadIdx.x; i < TILE_K * TILE_N; i += THREADS) {
            const int k = start + i / TILE_N, column = column0 + i % TILE_N;
            tileB[i / TILE_N][i % TILE_N] = k < K && column < N ? B[(size_t)k * N + column] : 0.0f;
        }
        __syncthreads();
        for (int k = 0; k < TILE_K; ++k) {
            float a[EACH], b[EACH];
            for (int i = 0; i < EACH; ++i) a[i] = tileA[ty + i * DOWN][k];
            for (int j = 0; j < EACH; ++j) b[j] = tileB[k][tx + j * ACROSS];
            for (int i = 0; i < EACH; ++i)
                for (int j = 0; j < EACH; ++j) sum[i][j] += a[i] * b[j];
        }
        __syncthreads();
    }
    for (int i = 0; i < EACH; ++i)
        for (int j = 0; j < EACH; ++j) {
            const int row = row0 + ty + i * DOWN, column = column0 + tx + j * ACROSS;
            if (row < M && column < N) C[(size_t)row * N + column] = sum[i][j];
        }
}
