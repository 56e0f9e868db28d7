#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "base/block_sizes.hpp"
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
    unsigned take() noexcept;
    void give_back(unsigned number) noexcept;

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    std::mutex mutex_;
    // Guarded by mutex_:
    std::array<std::uint64_t, end / 64 + 1> taken_ = {};
    unsigned lowest_free_ = first;
};

/// Returns the numbers of the process.
PoolNumbers& pool_numbers() noexcept;

}  // namespace tensorpool::blocks
