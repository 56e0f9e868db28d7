// With a limit of 1 MiB that the user set (TENSORPOOL_MAX_CAPACITY or _MAX_ALLOCATION), requests
// beyond it fail as with malloc, and the program continues.

#include <cerrno>
#include <new>
#include <vector>

#include "interpose/interposed.hpp"

int main() {
    using namespace tensorpool::testing;
    constexpr std::size_t large = std::size_t{2} << 20;
    expect_interposed();
    errno = 0;
    expect(std::malloc(large) == nullptr && errno == ENOMEM, "ENOMEM from malloc");
    errno = 0;
    expect(std::calloc(large, 1) == nullptr && errno == ENOMEM, "ENOMEM from calloc");
    void* p = nullptr;
    expect(posix_memalign(&p, 4096, large) == ENOMEM, "ENOMEM from posix_memalign");
    void* const small = std::malloc(100'000);
    expect(small != nullptr && is_of_pool(small), "a block within the limit");
    fill(small, 100'000, 5);
    errno = 0;
    expect(std::realloc(hidden(small), large) == nullptr && errno == ENOMEM, "ENOMEM from realloc");
    expect(is_filled(small, 100'000, 5), "the unchanged old block");
    try {
        std::vector<char> vector(large);
        expect(false, "an exception");
    } catch (const std::bad_alloc&) {
        std::free(small);
    }
    void* const again = std::malloc(500'000);
    expect(again != nullptr, "memory after the failures");
    std::free(again);
    return failures == 0 ? 0 : 1;
}
