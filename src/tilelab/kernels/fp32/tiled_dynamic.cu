// Tiled, dynamic: the same kernel with its tile width and its shared bytes chosen at the launch.
// Adds:   one binary for every TILE; a block's bytes are 2·TILE²·4, given to the launch.
// Bound:  as tiled; the inner loop cannot be unrolled by a width that the compiler does not know.
// Limits: any M, N, K; a square block, TILE = blockDim.x ≤ 32.
// C (M×N) = A (M×K) · B (K×N)
extern "C" __global__ void matmul(const float* A, const float* B, float* C, int M, int N, int K) {
    extern __shared__ float buffer[];
    const int tile = blockDim.x;
    float* tileA = buffer;                // one flat buffer, cut in two by hand:
    float* tileB = buffer + tile * tile;  // [ty][k] is now ty * tile + k
    const int tx = threadIdx.x, ty = threadIdx.y;
    const int row = blockIdx.y * tile + ty;
    const int column = blockIdx.x * tile + tx;

    float sum = 0.0f;
    for (int start = 0; start < K; start += tile) {
        tileA[ty * tile + tx] = row < M && start + tx < K ? A[(size_t)row * K + start + tx] : 0.0f;
        tileB[ty * tile + tx] = start + ty < K && column < N ? B[(size_t)(start + ty) * N + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < tile; ++k) sum += tileA[ty * tile + k] * tileB[k * tile + tx];
        __syncthreads();
    }
    if (row < M && column < N) C[(size_t)row * N + column] = sum;
}
