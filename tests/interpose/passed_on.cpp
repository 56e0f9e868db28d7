// What the pool cannot serve comes from the next allocator, as if the pool were not there; no size
// is too large for it unless the user says so.

#include <malloc.h>

#include <cstdint>

#include "interpose/interposed.hpp"

int main() {
    using namespace tensorpool::testing;
    constexpr std::size_t gib = std::size_t{1} << 30;
    expect_interposed();

    constexpr std::size_t bytes = 100'000;
    void* p = memalign(2 * gib, bytes);
    expect(p != nullptr, "an alignment that no pool has");
    expect(reinterpret_cast<std::uintptr_t>(p) % (2 * gib) == 0, "the alignment");
    expect(!is_of_pool(p), "a block of the next allocator");
    fill(p, bytes, 5);
    expect(is_filled(p, bytes, 5), "what was written");
    p = std::realloc(p, 2 * bytes);
    expect(p != nullptr && !is_of_pool(p), "it grows where it came from");
    expect(is_filled(p, bytes, 5), "what was written before it grew");
    std::free(p);

    for (int i = 0; i != 2; ++i) {
        char* const large = static_cast<char*>(i == 0 ? std::calloc(9, gib) : std::malloc(9 * gib));
        expect(large != nullptr, "9 GiB, touched or not");
        if (large == nullptr) continue;
        large[0] = large[9 * gib - 1] = 1;
        std::free(large);
    }
    return failures == 0 ? 0 : 1;
}
