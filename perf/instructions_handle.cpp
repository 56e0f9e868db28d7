/// Makes and ends PAIRS handles of the global pool, alternating between 256 B and 1 KiB.
/// perf/instructions runs this program as it runs instructions.cpp.

#include <cstdio>
#include <cstdlib>

#include <tensorpool/pooled_allocation.hpp>

#include "support/barrier.hpp"

namespace {

void make_and_end(std::size_t bytes) {
    perf::opaque(bytes);
    tensorpool::PooledAllocation handle(tensorpool::get_global_memory_pool(), bytes);
    // The handle lies in memory that others may change, as within an object of a program.
    tensorpool::PooledAllocation* seen = &handle;
    perf::opaque(seen);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: instructions_handle_perf PAIRS\n", stderr);
        return 2;
    }
    for (long pairs = std::atol(argv[1]); pairs > 0; pairs -= 2) {
        make_and_end(256);
        make_and_end(1024);
    }
}
