#pragma once

#include "base/block_sizes.hpp"
#include "pages/address_space.hpp"

namespace tensorpool::blocks {

/// The numbers of pools, which are their positions in every thread's table.
struct PoolNumbers {
    /// The number reserved for the global pool, whose inline fast path uses it before the pool is
    /// set up. The numbers between it and `first` are reserved for its finer series.
    static constexpr unsigned global = 0;
    static constexpr unsigned first = global + base::series_count;
    /// All numbers are less than this. The page map and the address space have 16 bits for them, of
    /// which the address space uses three values for other purposes.
    static constexpr unsigned end = pages::AddressSpace::max_pools;
    static constexpr unsigned none = ~0U;

    /// Takes the lowest free number. Returns `none` if there is none. Thread-safe.
    static unsigned take() noexcept;
    static void give_back(unsigned number) noexcept;
};

}  // namespace tensorpool::blocks
