#include "blocks/pool_numbers.hpp"

#include <array>
#include <cstdint>
#include <mutex>

#include "blocks/thread_registry.hpp"

namespace tensorpool::blocks {
namespace {

// Guarded by the registry's lock.
constinit std::array<std::uint64_t, PoolNumbers::end / 64 + 1> taken = {};
constinit unsigned lowest_free = PoolNumbers::first;

}  // namespace

unsigned PoolNumbers::take() noexcept {
    const std::lock_guard guard(thread_registry());
    for (unsigned number = lowest_free; number < end; ++number) {
        std::uint64_t& word = taken[number / 64];
        const std::uint64_t bit = std::uint64_t{1} << number % 64;
        if ((word & bit) != 0) continue;
        word |= bit;
        lowest_free = number + 1;
        return number;
    }
    return none;
}

void PoolNumbers::give_back(unsigned number) noexcept {
    const std::lock_guard guard(thread_registry());
    taken[number / 64] &= ~(std::uint64_t{1} << number % 64);
    if (number >= first && number < lowest_free) lowest_free = number;
}

}  // namespace tensorpool::blocks
