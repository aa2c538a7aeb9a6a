// CUDA C++ on a CPU: what a kernel sees when the host's compiler builds it.
//
// Every thread of a block is a fibre of one operating system thread, so at any moment exactly one CUDA thread runs
// and `tilelab_now` says which. The fibres change over at barriers and warp operations, in runtime.cpp.
// Shared arrays are static variables: blocks run one after another, and the runtime poisons them before each block.
#pragma once
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(...)
#define __grid_constant__
#define __builtin_assume(x) ((void)0)
// In a section of its own each: those of an inline function cannot share one with others, and it tells what a kernel may
// only read.
#define TILELAB_TEXT_(x) #x
#define TILELAB_TEXT(x) TILELAB_TEXT_(x)
#define TILELAB_SECTION(kind) section("tilelab_" kind "_" TILELAB_TEXT(__COUNTER__))
#ifdef TILELAB_CHECKED
// No array is larger than 48 KiB, so each has at least 16 KiB of nothing behind it: what runs out of one is seen.
#define __shared__ static __attribute__((TILELAB_SECTION("shared"), used, aligned(65536)))
#else
#define __shared__ static __attribute__((TILELAB_SECTION("shared"), used))
#endif
#define __constant__ __attribute__((TILELAB_SECTION("constant")))
#define __CUDA_ARCH__ 900
#define __CUDACC__ 1
#define TILELAB_EMULATION 1
// The word asm opens inline PTX, which no CPU runs.
#define asm _Pragma("GCC error \"inline PTX (asm) is not emulated\"") __asm__

#include "tilelab_vectors.h"

// ---- the thread that runs now
struct TilelabThread { uint3 thread, block; dim3 block_dim, grid_dim; };
extern "C" const TilelabThread* tilelab_now;
#define threadIdx (tilelab_now->thread)
#define blockIdx (tilelab_now->block)
#define blockDim (tilelab_now->block_dim)
#define gridDim (tilelab_now->grid_dim)
constexpr int warpSize = 32;

// ---- what runtime.cpp offers
enum TilelabVote { TILELAB_NONE, TILELAB_COUNT, TILELAB_AND, TILELAB_OR };
extern "C" {
extern char tilelab_dynamic_shared[];
// Where a barrier or a warp operation stands: its line, and a number of its own, for a line may hold two.
struct TilelabAt { int line, number; };
int tilelab_barrier(TilelabAt at, int vote, int predicate);
// All lanes of `mask` give a value and see everyone's: values[lane], valid where `present` has the lane's bit.
struct TilelabWarp { uint64_t values[32]; unsigned present; int lane; };
const TilelabWarp* tilelab_warp(TilelabAt at, unsigned mask, uint64_t value);
void tilelab_absent(TilelabAt at, int lane);  // a value was asked of a lane that is not there
unsigned tilelab_active(TilelabAt at);
void tilelab_copy_async(void* to, const void* from, size_t bytes, size_t zeros);
void tilelab_copy_commit();
void tilelab_copy_wait(unsigned newest_left);
void tilelab_atomic(const volatile void* address, size_t bytes, int line, bool swap);  // tells the checker
extern volatile int tilelab_updating;  // while it is set, nobody else has a turn
void tilelab_turn();  // lets the other threads go on
void tilelab_trap(int line);
void tilelab_assert(int line, const char* what);
long clock() noexcept;  // the C library's
}

// ---- barriers and warps
#define TILELAB_AT TilelabAt{__LINE__, __COUNTER__}
#define __syncthreads() ((void)tilelab_barrier(TILELAB_AT, TILELAB_NONE, 0))
#define __syncthreads_count(p) tilelab_barrier(TILELAB_AT, TILELAB_COUNT, (p) != 0)
#define __syncthreads_and(p) tilelab_barrier(TILELAB_AT, TILELAB_AND, (p) != 0)
#define __syncthreads_or(p) tilelab_barrier(TILELAB_AT, TILELAB_OR, (p) != 0)
#define __trap() tilelab_trap(__LINE__)
#include "assert.h"

template <class T> inline uint64_t tilelab_bits(T value) {
    static_assert(sizeof(T) <= 8, "a warp moves values of up to 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}
template <class T> inline T tilelab_value(uint64_t bits) {
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
#define __syncwarp(...) tilelab_syncwarp(TILELAB_AT __VA_OPT__(, ) __VA_ARGS__)
#define __shfl_sync(...) tilelab_shfl(TILELAB_AT, __VA_ARGS__)
#define __shfl_up_sync(...) tilelab_shfl_up(TILELAB_AT, __VA_ARGS__)
#define __shfl_down_sync(...) tilelab_shfl_down(TILELAB_AT, __VA_ARGS__)
#define __shfl_xor_sync(...) tilelab_shfl_xor(TILELAB_AT, __VA_ARGS__)
#define __ballot_sync(...) tilelab_ballot(TILELAB_AT, __VA_ARGS__)
#define __any_sync(...) tilelab_any(TILELAB_AT, __VA_ARGS__)
#define __all_sync(...) tilelab_all(TILELAB_AT, __VA_ARGS__)
#define __match_any_sync(...) tilelab_match_any(TILELAB_AT, __VA_ARGS__)
#define __match_all_sync(...) tilelab_match_all(TILELAB_AT, __VA_ARGS__)
#define __reduce_add_sync(...) tilelab_reduce_add(TILELAB_AT, __VA_ARGS__)
#define __reduce_min_sync(...) tilelab_reduce_min(TILELAB_AT, __VA_ARGS__)
#define __reduce_max_sync(...) tilelab_reduce_max(TILELAB_AT, __VA_ARGS__)
#define __reduce_and_sync(...) tilelab_reduce_and(TILELAB_AT, __VA_ARGS__)
#define __reduce_or_sync(...) tilelab_reduce_or(TILELAB_AT, __VA_ARGS__)
#define __reduce_xor_sync(...) tilelab_reduce_xor(TILELAB_AT, __VA_ARGS__)

inline void tilelab_syncwarp(TilelabAt at, unsigned mask = 0xffffffffu) { tilelab_warp(at, mask, 0); }
#define __activemask() tilelab_active(TILELAB_AT)
// A lane outside low … high leaves a thread its own value; of a lane that is not there nobody can tell: poison.
template <class T> inline T tilelab_shuffle(TilelabAt at, unsigned mask, T value, int source, int low, int high) {
    const TilelabWarp* warp = tilelab_warp(at, mask, tilelab_bits(value));
    if (source < low || source > high) return value;
    if (warp->present >> source & 1) return tilelab_value<T>(warp->values[source]);
    tilelab_absent(at, source);
    return tilelab_value<T>(~0ull);
}
inline int tilelab_lane() {
    const TilelabThread* t = tilelab_now;
    return (t->thread.x + t->block_dim.x * (t->thread.y + t->block_dim.y * t->thread.z)) & 31;
}
template <class T> inline T tilelab_shfl(TilelabAt at, unsigned mask, T v, int source, int width = 32) {
    const int low = tilelab_lane() & -width;
    return tilelab_shuffle(at, mask, v, low + (source & (width - 1)), low, low + width - 1);
}
template <class T> inline T tilelab_shfl_up(TilelabAt at, unsigned mask, T v, unsigned d, int width = 32) {
    const int lane = tilelab_lane(), low = lane & -width;
    return tilelab_shuffle(at, mask, v, lane - (int)d, low, low + width - 1);
}
template <class T> inline T tilelab_shfl_down(TilelabAt at, unsigned mask, T v, unsigned d, int width = 32) {
    const int lane = tilelab_lane(), low = lane & -width;
    return tilelab_shuffle(at, mask, v, lane + (int)d, low, low + width - 1);
}
template <class T> inline T tilelab_shfl_xor(TilelabAt at, unsigned mask, T v, int other, int width = 32) {
    const int lane = tilelab_lane(), low = lane & -width;
    return tilelab_shuffle(at, mask, v, lane ^ other, 0, low + width - 1);
}
inline unsigned tilelab_ballot(TilelabAt at, unsigned mask, int predicate) {
    const TilelabWarp* warp = tilelab_warp(at, mask, predicate != 0);
    unsigned ballot = 0;
    for (int lane = 0; lane < 32; ++lane)
        if (warp->present >> lane & 1) ballot |= (unsigned)warp->values[lane] << lane;
    return ballot;
}
inline int tilelab_any(TilelabAt at, unsigned mask, int p) { return tilelab_ballot(at, mask, p) != 0; }
inline int tilelab_all(TilelabAt at, unsigned mask, int p) { return tilelab_ballot(at, mask, !p) == 0; }
template <class T> inline unsigned tilelab_match_any(TilelabAt at, unsigned mask, T v) {
    const TilelabWarp* warp = tilelab_warp(at, mask, tilelab_bits(v));
    unsigned same = 0;
    for (int lane = 0; lane < 32; ++lane)
        if ((warp->present >> lane & 1) && warp->values[lane] == tilelab_bits(v)) same |= 1u << lane;
    return same;
}
template <class T> inline unsigned tilelab_match_all(TilelabAt at, unsigned mask, T v, int* all) {
    const TilelabWarp* warp = tilelab_warp(at, mask, tilelab_bits(v));
    *all = 1;
    for (int lane = 0; lane < 32; ++lane)
        if ((warp->present >> lane & 1) && warp->values[lane] != tilelab_bits(v)) *all = 0;
    return *all ? warp->present : 0;
}
template <class T, class F> inline T tilelab_reduce(TilelabAt at, unsigned mask, T v, F combine) {
    const TilelabWarp* warp = tilelab_warp(at, mask, tilelab_bits(v));
    bool first = true;
    T total{};
    for (int lane = 0; lane < 32; ++lane) {
        if (!(warp->present >> lane & 1)) continue;
        const T one = tilelab_value<T>(warp->values[lane]);
        total = first ? one : combine(total, one);
        first = false;
    }
    return total;
}
#define TILELAB_REDUCE(name, expression) \
    template <class T> inline T tilelab_reduce_##name(TilelabAt at, unsigned mask, T v) { \
        return tilelab_reduce(at, mask, v, [](T a, T b) { return (T)(expression); }); \
    }
TILELAB_REDUCE(add, a + b)
TILELAB_REDUCE(min, a < b ? a : b)
TILELAB_REDUCE(max, a > b ? a : b)
TILELAB_REDUCE(and, a & b)
TILELAB_REDUCE(or, a | b)
TILELAB_REDUCE(xor, a ^ b)

// ---- memory: fences order what one operating system thread does anyway
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}
inline void __nanosleep(unsigned) { tilelab_turn(); }
template <class T> inline T __ldg(const T* p) { return *p; }
template <class T> inline T __ldcg(const T* p) { return *p; }
template <class T> inline T __ldca(const T* p) { return *p; }
template <class T> inline T __ldcs(const T* p) { return *p; }
template <class T> inline T __ldlu(const T* p) { return *p; }
template <class T> inline T __ldcv(const T* p) { return *p; }
template <class T> inline void __stwb(T* p, T v) { *p = v; }
template <class T> inline void __stcg(T* p, T v) { *p = v; }
template <class T> inline void __stcs(T* p, T v) { *p = v; }
template <class T> inline void __stwt(T* p, T v) { *p = v; }
inline size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }

// ---- asynchronous copies: nothing arrives before the wait that the source asks for
inline void __pipeline_memcpy_async(void* to, const void* from, size_t bytes, size_t zeros = 0) {
    tilelab_copy_async(to, from, bytes, zeros);
}
inline void __pipeline_commit() { tilelab_copy_commit(); }
inline void __pipeline_wait_prior(unsigned newest_left) { tilelab_copy_wait(newest_left); }

// ---- atomics: one thread runs at a time, so a plain update is atomic; the checker is told
#define TILELAB_UNSEEN __attribute__((no_sanitize("thread", "undefined"), noinline))
template <class T, class F> TILELAB_UNSEEN T tilelab_update(int line, T* p, F next, bool swap = false) {
    tilelab_atomic(p, sizeof(T), line, swap);
    tilelab_updating = 1;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    const T old = *p;
    *p = next(old);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    tilelab_updating = 0;
    tilelab_turn();
    return old;
}
// The operand takes no part in deduction, so atomicAdd(&x, 1) works for an unsigned x as it does in CUDA.
template <class T> struct TilelabSame { using type = T; };
template <class T> using TilelabOperand = typename TilelabSame<T>::type;
#define TILELAB_ATOMIC(name, expression) \
    template <class T> inline T name(T* p, TilelabOperand<T> v, int line = __builtin_LINE()) { \
        return tilelab_update(line, p, [v](T old) TILELAB_UNSEEN -> T { return (T)(expression); }); \
    }
TILELAB_ATOMIC(atomicAdd, old + v)
TILELAB_ATOMIC(atomicSub, old - v)
TILELAB_ATOMIC(atomicMin, v < old ? v : old)
TILELAB_ATOMIC(atomicMax, v > old ? v : old)
TILELAB_ATOMIC(atomicExch, v)
TILELAB_ATOMIC(atomicInc, old >= v ? T(0) : old + T(1))
TILELAB_ATOMIC(atomicDec, old == T(0) || old > v ? v : old - T(1))
TILELAB_ATOMIC(atomicAnd, old & v)
TILELAB_ATOMIC(atomicOr, old | v)
TILELAB_ATOMIC(atomicXor, old ^ v)
// Those of a block, and of all devices, are the same where one thread runs at a time.
#define TILELAB_SCOPES(name) \
    template <class T> inline T name##_block(T* p, TilelabOperand<T> v, int line = __builtin_LINE()) { return name(p, v, line); } \
    template <class T> inline T name##_system(T* p, TilelabOperand<T> v, int line = __builtin_LINE()) { return name(p, v, line); }
TILELAB_SCOPES(atomicAdd) TILELAB_SCOPES(atomicSub) TILELAB_SCOPES(atomicMin) TILELAB_SCOPES(atomicMax)
TILELAB_SCOPES(atomicExch) TILELAB_SCOPES(atomicInc) TILELAB_SCOPES(atomicDec)
TILELAB_SCOPES(atomicAnd) TILELAB_SCOPES(atomicOr) TILELAB_SCOPES(atomicXor)
#undef TILELAB_SCOPES
inline float2 atomicAdd(float2* p, float2 v, int line = __builtin_LINE()) {
    return tilelab_update(line, p, [v](float2 old) TILELAB_UNSEEN -> float2 { return {old.x + v.x, old.y + v.y}; });
}
inline float4 atomicAdd(float4* p, float4 v, int line = __builtin_LINE()) {
    return tilelab_update(line, p, [v](float4 old) TILELAB_UNSEEN -> float4 {
        return {old.x + v.x, old.y + v.y, old.z + v.z, old.w + v.w};
    });
}
template <class T> inline T atomicCAS(T* p, TilelabOperand<T> expected, TilelabOperand<T> v, int line = __builtin_LINE()) {
    return tilelab_update(line, p, [=](T old) TILELAB_UNSEEN -> T { return old == expected ? v : old; }, true);
}
#define atomicCAS_block atomicCAS
#define atomicCAS_system atomicCAS

#include "tilelab_arithmetic.h"

// ---- the way in: the runtime hands over one pointer an argument
template <class... P> struct TilelabEntry {
    template <int... I> struct Indices {};
    template <int N, int... I> struct Count : Count<N - 1, N - 1, I...> {};
    template <int... I> struct Count<0, I...> { using type = Indices<I...>; };
    template <int... I> static void go(void (*kernel)(P...), void** a, Indices<I...>) { kernel(*(P*)a[I]...); }
    static void call(void (*kernel)(P...), void** a) { go(kernel, a, typename Count<sizeof...(P)>::type()); }
};
template <class... P> inline void tilelab_call(void (*kernel)(P...), void** arguments) {
    TilelabEntry<P...>::call(kernel, arguments);
}
template <class... P> constexpr int tilelab_arity(void (*)(P...)) { return sizeof...(P); }
