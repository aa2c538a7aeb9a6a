// What the parts of the emulator know of each other. See include/tilelab_cuda.h for what a kernel sees.
#pragma once
#include <stddef.h>
#include <stdint.h>

struct Index { unsigned x, y, z; };
// The same memory as TilelabThread in tilelab_cuda.h.
struct Thread { Index thread, block, block_dim, grid_dim; };

struct Array { char name[64]; char* begin; size_t bytes, element; };

struct Job {
    unsigned grid[3], block[3], dynamic_bytes, order_seed;
    int order;  // 0 forward, 1 reverse, 2 shuffled
    Array arrays[64];
    int array_count;
    char* arena;
    size_t arena_bytes;
    Array shared[128];
    int shared_count;
    char *shared_begin, *shared_end;  // the span of all static shared arrays
};
extern Job job;

struct Fibre;
extern Fibre* fibre_now;
unsigned fibre_number();  // x + y * dim.x + z * dim.x * dim.y
unsigned block_number();
extern unsigned phase;         // barriers that the block has passed
extern unsigned warp_phase[];  // warp operations that each warp has passed

// report.cpp
[[noreturn]] void give_up(const char* format, ...);
void finding(const char* kind, const void* code, const char* format, ...);
long code_offset(const void* code);  // in kernel.so; 0 elsewhere
extern "C" char tilelab_dynamic_shared[];

// check.cpp
void check_start();
void check_copy_issued(void* to, const void* from, size_t bytes, size_t read, const void* code);
void check_copy_arrived(void* to, size_t bytes, const void* code);
