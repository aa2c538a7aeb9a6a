// Prints the offsets of walkthrough_b.cu's partition, computed on the host: one line a thread, i fastest, then j, k.
#include "walkthrough_b.cu"

#include <cstdio>
#include <cstdlib>

int main(int count, char** words) {
    if (count != 4) return 2;
    const int M = atoi(words[1]), K = atoi(words[2]), block = atoi(words[3]);
    for (int thread = 0; thread < 256; ++thread) {
        each_offset(M, K, block, thread, [](int, int, int, int offset) { printf("%d ", offset); });
        printf("\n");
    }
}
