// CUDA C++ twins of simulator_kernels.py, name for name. Shared memory is volatile, so that the hardware makes the
// accesses that the source names: an optimising compiler would merge neighbouring loads into wider ones.
//
// usage: twins patterns.txt    each line: kernel, number of threads, indices; then the whole kernels
//        twins NAME            one kernel of the race corpus
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

constexpr int WORDS = 2048, TILE = 16;

static void check(cudaError_t error) {
    if (error != cudaSuccess) { fprintf(stderr, "%s\n", cudaGetErrorString(error)); exit(1); }
}

// A vector access must stay one instruction: inline PTX, volatile, on shared memory.
template <class T> __device__ T load_shared(const T* p);
template <class T> __device__ void store_shared(T* p, T v);
__device__ unsigned at(const void* p) { return (unsigned)__cvta_generic_to_shared(p); }
template <> __device__ float load_shared(const float* p) {
    float v; asm volatile("ld.shared.f32 %0, [%1];" : "=f"(v) : "r"(at(p)) : "memory"); return v;
}
template <> __device__ double load_shared(const double* p) {
    double v; asm volatile("ld.shared.f64 %0, [%1];" : "=d"(v) : "r"(at(p)) : "memory"); return v;
}
template <> __device__ float4 load_shared(const float4* p) {
    float4 v;
    asm volatile("ld.shared.v4.f32 {%0,%1,%2,%3}, [%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "r"(at(p)) : "memory");
    return v;
}
template <> __device__ void store_shared(float* p, float v) {
    asm volatile("st.shared.f32 [%0], %1;" ::"r"(at(p)), "f"(v) : "memory");
}
template <> __device__ void store_shared(double* p, double v) {
    asm volatile("st.shared.f64 [%0], %1;" ::"r"(at(p)), "d"(v) : "memory");
}
template <> __device__ void store_shared(float4* p, float4 v) {
    asm volatile("st.shared.v4.f32 [%0], {%1,%2,%3,%4};" ::"r"(at(p)), "f"(v.x), "f"(v.y), "f"(v.z), "f"(v.w) : "memory");
}
template <class T> __device__ T made(float v) { return T(v); }
template <> __device__ float4 made(float v) { return make_float4(v, 1, 2, 3); }
__device__ float seen(float v) { return v; }
__device__ float seen(double v) { return float(v); }
__device__ float seen(float4 v) { return v.x + v.y + v.z + v.w; }

template <class T> __device__ void fill(T* s) {
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) store_shared(&s[i], made<T>(i));
    __syncthreads();
}
template <class T> __global__ void shared_load(float* out, const int* index) {
    extern __shared__ float4 raw[];
    T* s = reinterpret_cast<T*>(raw);
    fill(s);
    out[threadIdx.x] = seen(load_shared(&s[index[threadIdx.x]]));
}
template <class T> __global__ void shared_store(float* out, const int* index) {
    extern __shared__ float4 raw[];
    T* s = reinterpret_cast<T*>(raw);
    fill(s);
    store_shared(&s[index[threadIdx.x]], made<T>(threadIdx.x));
    __syncthreads();
    out[threadIdx.x] = seen(load_shared(&s[threadIdx.x]));
}
template <class T> __global__ void global_load(T* out, const T* a, const int* index) {
    out[threadIdx.x] = a[index[threadIdx.x]];
}
template <class T> __global__ void global_store(T* out, const int* index) { out[index[threadIdx.x]] = made<T>(threadIdx.x); }

__global__ void transpose_naive(float* out, const float* a, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
    for (int j = 0; j < 32; j += 8) out[x * n + y + j] = a[(y + j) * n + x];
}
template <int PITCH, bool SWIZZLED> __device__ void transpose(float* out, const float* a, int n) {
    __shared__ volatile float s[32 * PITCH];
    int tx = threadIdx.x, ty = threadIdx.y, bx = blockIdx.x * 32, by = blockIdx.y * 32;
    for (int j = 0; j < 32; j += 8) s[(ty + j) * PITCH + (SWIZZLED ? tx ^ (ty + j) : tx)] = a[(by + ty + j) * n + bx + tx];
    __syncthreads();
    for (int j = 0; j < 32; j += 8) out[(bx + ty + j) * n + by + tx] = s[tx * PITCH + (SWIZZLED ? (ty + j) ^ tx : ty + j)];
}
__global__ void transpose_tile(float* out, const float* a, int n) { transpose<32, false>(out, a, n); }
__global__ void transpose_padded(float* out, const float* a, int n) { transpose<33, false>(out, a, n); }
__global__ void transpose_swizzled(float* out, const float* a, int n) { transpose<32, true>(out, a, n); }

template <bool SWAPPED> __device__ void matmul(float* C, const float* A, const float* B, int n) {
    __shared__ volatile float sA[TILE][TILE], sB[TILE][TILE];
    int tx = threadIdx.x, ty = threadIdx.y, x = blockIdx.x * TILE + tx, y = blockIdx.y * TILE + ty;
    float acc = 0;
    for (int t = 0; t < n / TILE; ++t) {
        sA[ty][tx] = A[y * n + t * TILE + tx];
        sB[ty][tx] = B[(t * TILE + ty) * n + x];
        __syncthreads();
        for (int k = 0; k < TILE; ++k) acc += (SWAPPED ? sA[tx][k] : sA[ty][k]) * sB[k][tx];
        __syncthreads();
    }
    C[y * n + x] = acc;
}
__global__ void matmul_tiled(float* C, const float* A, const float* B, int n) { matmul<false>(C, A, B, n); }
__global__ void matmul_swapped(float* C, const float* A, const float* B, int n) { matmul<true>(C, A, B, n); }

// ---- the race corpus
__global__ void reverse_racy(int* out) {
    __shared__ volatile int s[256];
    int t = threadIdx.x;
    s[t] = t;
    out[t] = s[255 - t];
}
__global__ void reverse_right(int* out) {
    __shared__ volatile int s[256];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    out[t] = s[255 - t];
}
template <bool SECOND> __device__ void loop(int* out) {
    __shared__ volatile int s[256];
    int t = threadIdx.x, v = 0;
    for (int k = 0; k < 4; ++k) {
        s[t] = t + k;
        __syncthreads();
        v += s[255 - t];
        if (SECOND) __syncthreads();
    }
    out[t] = v;
}
__global__ void loop_without_second_barrier(int* out) { loop<false>(out); }
__global__ void loop_right(int* out) { loop<true>(out); }
template <bool BARRIER> __device__ void reduce(int* out) {
    __shared__ volatile int s[256];
    int t = threadIdx.x;
    s[t] = t;
    __syncthreads();
    for (int h = 128; h > 0; h /= 2) {
        if (t < h) s[t] = s[t] + s[t + h];
        if (BARRIER) __syncthreads();
    }
    if (t == 0) out[0] = s[0];
}
__global__ void reduce_racy(int* out) { reduce<false>(out); }
__global__ void reduce_right(int* out) { reduce<true>(out); }
template <bool ATOMIC> __device__ void count(int* out) {
    __shared__ int s[8];
    volatile int* v = s;
    int t = threadIdx.x;
    if (t < 8) v[t] = 0;
    __syncthreads();
    if (ATOMIC) atomicAdd(&s[t % 8], 1);
    else v[t % 8] = v[t % 8] + 1;
    __syncthreads();
    if (t < 8) out[t] = v[t];
}
__global__ void count_racy(int* out) { count<false>(out); }
__global__ void count_right(int* out) { count<true>(out); }
template <bool SYNC> __device__ void warp_exchange(int* out) {
    __shared__ volatile int s[256];
    int t = threadIdx.x;
    s[t] = t;
    if (SYNC) __syncwarp();
    out[t] = s[t ^ 1];
}
__global__ void warp_exchange_racy(int* out) { warp_exchange<false>(out); }
__global__ void warp_exchange_right(int* out) { warp_exchange<true>(out); }

struct Case { const char* name; void (*kernel)(int*); };
static const Case RACES[] = {
    {"reverse_racy", reverse_racy}, {"reverse_right", reverse_right},
    {"loop_without_second_barrier", loop_without_second_barrier}, {"loop_right", loop_right},
    {"reduce_racy", reduce_racy}, {"reduce_right", reduce_right}, {"count_racy", count_racy},
    {"count_right", count_right}, {"warp_exchange_racy", warp_exchange_racy},
    {"warp_exchange_right", warp_exchange_right},
};

template <class T> static T* device_memory(size_t count) {
    T* p;
    check(cudaMalloc(&p, count * sizeof(T)));
    check(cudaMemset(p, 0, count * sizeof(T)));
    return p;
}

template <class T> static bool launch(const std::string& name, const char* width, int threads, const int* index) {
    static float* out = device_memory<float>(1024);
    static T* to = device_memory<T>(1 << 16);
    static T* from = device_memory<T>(1 << 16);
    int bytes = WORDS * sizeof(T);
    if (name == std::string("shared_load_") + width) shared_load<T><<<1, threads, bytes>>>(out, index);
    else if (name == std::string("shared_store_") + width) shared_store<T><<<1, threads, bytes>>>(out, index);
    else if (name == std::string("global_load_") + width) global_load<T><<<1, threads>>>(to, from, index);
    else if (name == std::string("global_store_") + width) global_store<T><<<1, threads>>>(to, index);
    else return false;
    return true;
}

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    for (const Case& c : RACES)
        if (!strcmp(argv[1], c.name)) {
            c.kernel<<<1, 256>>>(device_memory<int>(256));
            check(cudaDeviceSynchronize());
            return 0;
        }
    std::ifstream file(argv[1]);
    int* index = device_memory<int>(1024);
    for (std::string line; std::getline(file, line);) {
        std::istringstream words(line);
        std::string name;
        int threads;
        words >> name >> threads;
        std::vector<int> numbers(threads);
        for (int& i : numbers) words >> i;
        check(cudaMemcpy(index, numbers.data(), threads * sizeof(int), cudaMemcpyHostToDevice));
        bool known = launch<float>(name, "4", threads, index) || launch<double>(name, "8", threads, index) ||
                     launch<float4>(name, "16", threads, index);
        if (!known) {
            int n = 64;
            static float *a = device_memory<float>(n * n), *b = device_memory<float>(n * n), *c = device_memory<float>(n * n);
            dim3 tiles(n / 32, n / 32), rows(32, 8), blocks(n / TILE, n / TILE), tile(TILE, TILE);
            if (name == "transpose_naive") transpose_naive<<<tiles, rows>>>(c, a, n);
            else if (name == "transpose_tile") transpose_tile<<<tiles, rows>>>(c, a, n);
            else if (name == "transpose_padded") transpose_padded<<<tiles, rows>>>(c, a, n);
            else if (name == "transpose_swizzled") transpose_swizzled<<<tiles, rows>>>(c, a, n);
            else if (name == "matmul_tiled") matmul_tiled<<<blocks, tile>>>(c, a, b, n);
            else if (name == "matmul_swapped") matmul_swapped<<<blocks, tile>>>(c, a, b, n);
            else { fprintf(stderr, "no kernel %s\n", name.c_str()); return 2; }
        }
        check(cudaGetLastError());
        check(cudaDeviceSynchronize());
    }
    return 0;
}
