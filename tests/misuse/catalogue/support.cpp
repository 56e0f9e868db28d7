// What the cases share.

#include <cstdlib>

#include "misuse/catalogue/catalogue.hpp"
#include "misuse/catalogue/child.hpp"

namespace tensorpool::misuse {
namespace {

Checks checks_of_case = Checks::off;

}  // namespace

void set_checks(Checks checks) noexcept {
    checks_of_case = checks;
}

Checks checks() noexcept {
    return checks_of_case;
}

PoolOptions pool_options(const char* name) {
    PoolOptions options;
    options.name = name;
    options.checks = checks();
    options.guard_share = 1;
    return options;
}

ArenaOptions arena_options(const char* name) {
    ArenaOptions options;
    options.name = name;
    options.checks = checks();
    return options;
}

MemoryPool& pool() {
    static MemoryPool& made = *new MemoryPool(pool_options("mine"));
    return made;
}

MemoryPool& other_pool() {
    static MemoryPool& made = *new MemoryPool(pool_options("theirs"));
    return made;
}

void reuse_blocks(std::size_t bytes) {
    const std::size_t count = 2 * pool_options("mine").quarantine_bytes / bytes + 1000;
    for (std::size_t i = 0; i != count; ++i) pool().deallocate(pool().allocate(bytes), bytes);
}

void expect_harmless(bool is_harmless) {
    if (is_harmless) std::_Exit(Child::harmless);
}

}  // namespace tensorpool::misuse
