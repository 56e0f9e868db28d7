// Phases that take most of a memory group in turns from the pool and from the C library, each in a
// thread of its own: what the pool keeps free must not keep the C library from growing. Run by
// support/in_memory_group, which has room for one and a half of such a phase.

#include <thread>
#include <vector>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;
using std::size_t;

constexpr size_t phase_bytes = size_t{35} << 20;

void run_phase(size_t bytes) {
    std::vector<void*> blocks(phase_bytes / bytes);
    for (void*& block : blocks) {
        block = hidden(std::malloc(bytes));
        std::memset(block, 3, bytes);
    }
    for (void* const block : blocks) std::free(block);
}

}  // namespace

int main() {
    expect_interposed();
    for (const size_t bytes : {500, 125'000, 20'000, 3'125'000, 1000, 9'000'000, 500}) {
        std::thread(run_phase, bytes).join();
    }
    return failures != 0 ? 1 : 0;
}
