// Preloaded after the library, so that it starts before the pool. Its fork handlers run while the
// forking thread holds the pool's locks, and they allocate and free.

#include <pthread.h>

#include <cstdlib>
#include <string>

namespace {

void* kept = nullptr;

void around_fork() {
    std::free(kept);
    kept = std::malloc(100'000);
    for (std::size_t bytes = 1; bytes < 1'000'000; bytes *= 3) {
        std::free(std::realloc(std::malloc(bytes), bytes * 2));
    }
    if (std::string(70'000, 'x').size() != 70'000) std::abort();
}

[[maybe_unused]] const bool added = pthread_atfork(around_fork, around_fork, around_fork) == 0;

}  // namespace
