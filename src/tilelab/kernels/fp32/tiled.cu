// Tiled: a block computes TILE×TILE outputs and shares what it loads.
// Adds:   shared memory; each element is fetched once a block instead of once a thread: TILE times less traffic.
// Bound:  two shared loads for each multiply-add; the shared memory pipe.
// Limits: any M, N, K (edges are filled with zeros); TILE×TILE threads, so TILE ≤ 32.
// C (M×N) = A (M×K) · B (K×N)
#ifndef TILE
#define TILE 16
#endif

extern "C" __global__ void __launch_bounds__(TILE * TILE)
matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    __shared__ float tileA[TILE][TILE];
    __shared__ float tileB[TILE][TILE];
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * TILE + ty;
    const int column = blockIdx.x * TILE + tx;

    float sum = 0.0f;
    for (int start = 0; start < K; start += TILE) {
        tileA[ty][tx] = row < M && start + tx < K ? A[(size_t)row * K + start + tx] : 0.0f;
        tileB[ty][tx] = start + ty < K && column < N ? B[(size_t)(start + ty) * N + column] : 0.0f;
        __syncthreads();  // the tiles are complete
        for (int k = 0; k < TILE; ++k) sum += tileA[ty][k] * tileB[k][tx];
        __syncthreads();  // nobody reads them any more
    }
    if (row < M && column < N) C[(size_t)row * N + column] = sum;
}
