// The pool keeps the memory that the next allocator needs, under a limit on addresses.

#include <sys/resource.h>

#include <vector>

#include "interpose/interposed.hpp"

using namespace tensorpool::testing;

namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

std::size_t mapped_bytes() {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages;
    return pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

// All blocks of a round are served, of which the pool serves those from the minimum on. A byte
// of each 64 KiB is written: the limit is one of addresses.
void use(std::size_t bytes, std::size_t all) {
    std::vector<void*> blocks(all / bytes);
    for (void*& block : blocks) {
        block = std::malloc(bytes);
        if (block == nullptr) return expect(false, "a block", bytes);
        auto* const first = static_cast<volatile char*>(block);
        for (std::size_t i = 0; i < bytes; i += 65536) first[i] = 1;
        first[bytes - 1] = 1;
    }
    for (void* const block : blocks) std::free(block);
}

}  // namespace

int main() {
    expect_interposed();
    std::free(hidden(std::malloc(mib)));  // the pool has its tables
    const rlim_t limit = mapped_bytes() + 700 * mib;
    const rlimit limits{limit, limit};
    setrlimit(RLIMIT_AS, &limits);
    for (int round = 0; round != 3; ++round) {
        use(4 * mib, 500 * mib);
        use(32'000, 500 * mib);
    }
    return failures;
}
