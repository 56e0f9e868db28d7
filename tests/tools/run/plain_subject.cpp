/// @file
/// Knows nothing of pools: allocates as many bytes as each of its words says.

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int count, char** words) {
    for (int i = 1; i < count; ++i) {
        const unsigned long bytes = std::strtoul(words[i], nullptr, 10);
        void* const block = std::malloc(bytes);
        if (block == nullptr) {
            std::puts("refused");
            continue;
        }
        std::memset(block, 1, bytes);
        // What it holds at its end stands in the report.
        static void* volatile kept;
        kept = block;
    }
}
