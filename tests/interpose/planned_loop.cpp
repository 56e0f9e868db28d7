// A loop of malloc and free that a plan serves. Frees find the plan on any thread, after the scope
// and through every function of malloc.

#include <cstdlib>
#include <cstring>
#include <thread>

#include <malloc.h>

#include <tensorpool/serve_scope.hpp>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool;
using namespace tensorpool::testing;

constexpr std::size_t mib = std::size_t{1} << 20;

void step() {
    auto* const first = static_cast<char*>(hidden(std::malloc(mib)));
    auto* const zeroed = static_cast<char*>(hidden(std::calloc(2, mib)));
    expect(zeroed[0] == 0 && zeroed[2 * mib - 1] == 0, "zeros", 0);
    std::memset(first, 1, mib);
    std::memset(zeroed, 2, 2 * mib);
    expect(malloc_usable_size(first) >= mib, "a usable size", malloc_usable_size(first));
    auto* const longer = static_cast<char*>(hidden(std::realloc(first, 3 * mib)));
    expect(longer[0] == 1 && longer[mib - 1] == 1, "the content after realloc", 0);
    std::thread([&] { std::free(zeroed); }).join();
    std::free(longer);
}

}  // namespace

int main() {
    expect_interposed();
    PlannedArena arena;
    for (int iteration = 0; iteration != 5; ++iteration) {
        const ServeScope serve(arena);
        step();
    }
    const PlannedArenaStatistics statistics = arena.statistics();
    expect(statistics.from_pool == 3, "one iteration served by the pool", statistics.from_pool);
    expect(statistics.served == 12, "four served by the plan", statistics.served);
    expect(statistics.in_use_bytes + statistics.pool_in_use_bytes == 0, "nothing in use",
           statistics.in_use_bytes);
    void* late = nullptr;
    {
        const ServeScope serve(arena);
        late = hidden(std::malloc(mib));
    }
    expect(arena.statistics().in_use_bytes == mib, "a block that outlives its scope", 0);
    std::free(late);
    expect(arena.statistics().in_use_bytes == 0, "its free to be counted", 0);
    return failures == 0 ? 0 : 1;
}
