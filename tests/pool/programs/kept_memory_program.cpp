// Under a limit on addresses (for an arena, which reserves them: on memory), a pool keeps what a
// request of another pool, an arena or a scratch needs. The argument says who requests. Exits with
// 0 if the request is served.

#include <sys/resource.h>

#include <cstdio>
#include <new>
#include <string_view>

#include <tensorpool/arena.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/scratch.hpp>

namespace {

using namespace tensorpool;

constexpr std::size_t gib = std::size_t{1} << 30;

void request(std::string_view requester) {
    if (requester == "pool") {
        MemoryPool pool({.name = "requests"});
        pool.deallocate(pool.allocate(gib), gib);
    } else if (requester == "reserve") {
        MemoryPool pool({.name = "requests"});
        pool.reserve(gib);
    } else if (requester == "arena") {
        Arena arena({.name = "requests", .max_capacity = gib + gib / 4});
        (void)arena.allocate(gib);
    } else {
        const ScratchScope scope;
        (void)Scratch::local().allocate(gib);
    }
}

}  // namespace

int main(int, char** arguments) {
    const bool is_arena = std::string_view(arguments[1]) == "arena";
    const rlim_t bytes = is_arena ? gib + gib / 2 : 2 * gib;
    const rlimit limit{bytes, bytes};
    if (setrlimit(is_arena ? RLIMIT_DATA : RLIMIT_AS, &limit) != 0) return 2;
    MemoryPool keeps({.name = "keeps"});
    keeps.deallocate(keeps.allocate(gib), gib);
    try {
        request(arguments[1]);
    } catch (const std::bad_alloc& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
