#include "blocks/pool_numbers.hpp"

#include "base/never_destroyed.hpp"

namespace tensorpool::blocks {
namespace {

constinit base::NeverDestroyed<PoolNumbers> the_numbers;

}  // namespace

PoolNumbers& pool_numbers() noexcept {
    return the_numbers.get();
}

unsigned PoolNumbers::take() noexcept {
    const std::lock_guard guard(mutex_);
    for (unsigned number = lowest_free_; number < end; ++number) {
        std::uint64_t& word = taken_[number / 64];
        const std::uint64_t bit = std::uint64_t{1} << number % 64;
        if ((word & bit) != 0) continue;
        word |= bit;
        lowest_free_ = number + 1;
        return number;
    }
    return none;
}

void PoolNumbers::give_back(unsigned number) noexcept {
    const std::lock_guard guard(mutex_);
    taken_[number / 64] &= ~(std::uint64_t{1} << number % 64);
    if (number >= first && number < lowest_free_) lowest_free_ = number;
}

}  // namespace tensorpool::blocks
