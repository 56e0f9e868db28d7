#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "base/block_sizes.hpp"
#include "base/never_destroyed.hpp"
#include "pages/address_space.hpp"

namespace tensorpool::blocks {

/// The numbers of pools, which are their positions in every thread's table. Thread-safe.
class PoolNumbers {
public:
    constexpr PoolNumbers() noexcept = default;

    /// The number reserved for the global pool, whose inline fast path uses it before the pool is
    /// set up. The numbers between it and `first` are reserved for its finer series.
    static constexpr unsigned global = 0;
    static constexpr unsigned first = global + base::series_count;
    /// All numbers are less than this. The page map and the address space have 16 bits for them, of
    /// which the address space uses three values for other purposes.
    static constexpr unsigned end = pages::AddressSpace::max_pools;
    static constexpr unsigned none = ~0U;

    /// Takes the lowest free number. Returns `none` if there is none.
    unsigned take() noexcept {
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
    void give_back(unsigned number) noexcept {
        const std::lock_guard guard(mutex_);
        taken_[number / 64] &= ~(std::uint64_t{1} << number % 64);
        if (number >= first && number < lowest_free_) lowest_free_ = number;
    }

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    std::mutex mutex_;
    // Guarded by mutex_:
    std::array<std::uint64_t, end / 64 + 1> taken_ = {};
    unsigned lowest_free_ = first;
};

/// The numbers of the process.
inline constinit base::NeverDestroyed<PoolNumbers> pool_numbers;

}  // namespace tensorpool::blocks
