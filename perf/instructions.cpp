/// Makes PAIRS pairs of allocate and sized deallocate, alternating between 256 B and 1 KiB.
/// perf/instructions runs this program twice under Valgrind, with different numbers of pairs, and
/// divides the difference.

#include <cstdio>
#include <cstdlib>

#include "subject.hpp"
#include "support/barrier.hpp"

namespace {

void pair(std::size_t bytes) {
    perf::opaque(bytes);
    void* block = perf::Subject::allocate(bytes);
    perf::opaque(block);
    perf::opaque(bytes);
    perf::Subject::deallocate(block, bytes);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) {
        std::fputs("usage: instructions_… PAIRS\n", stderr);
        return 2;
    }
    for (long pairs = std::atol(argv[1]); pairs > 0; pairs -= 2) {
        pair(256);
        pair(1024);
    }
}
