/// @file
/// A program without pools: allocates the number of bytes given by each argument.

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int count, char** arguments) {
    for (int i = 1; i < count; ++i) {
        const unsigned long bytes = std::strtoul(arguments[i], nullptr, 10);
        void* const block = std::malloc(bytes);
        if (block == nullptr) {
            std::puts("refused");
            continue;
        }
        std::memset(block, 1, bytes);
        // The block is in use at the end, so that it appears in the report.
        static void* volatile kept;
        kept = block;
    }
}
