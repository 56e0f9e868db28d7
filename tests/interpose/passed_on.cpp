// The next allocator serves requests that the pool cannot, as if the pool were not there. No size
// is too large, unless the user sets a limit.

#include <malloc.h>

#include <cstdint>

#include "interpose/interposed.hpp"

int main() {
    using namespace tensorpool::testing;
    constexpr std::size_t gib = std::size_t{1} << 30;
    expect_interposed();

    constexpr std::size_t bytes = 100'000;
    void* p = memalign(2 * gib, bytes);
    expect(p != nullptr, "a block of an alignment that the pool does not support");
    expect(reinterpret_cast<std::uintptr_t>(p) % (2 * gib) == 0, "the alignment");
    expect(!is_of_pool(p), "a block of the next allocator");
    fill(p, bytes, 5);
    expect(is_filled(p, bytes, 5), "the written content");
    p = std::realloc(p, 2 * bytes);
    expect(p != nullptr && !is_of_pool(p), "growth in the same allocator");
    expect(is_filled(p, bytes, 5), "the content from before the growth");
    std::free(p);

    for (int i = 0; i != 2; ++i) {
        char* const large = static_cast<char*>(i == 0 ? std::calloc(9, gib) : std::malloc(9 * gib));
        expect(large != nullptr, "a block of 9 GiB");
        if (large == nullptr) continue;
        large[0] = large[9 * gib - 1] = 1;
        std::free(large);
    }
    return failures == 0 ? 0 : 1;
}
