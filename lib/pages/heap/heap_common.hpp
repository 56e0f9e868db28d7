#pragma once

#include <mutex>

#include "pages/heap/fresh_memory.hpp"
#include "pages/heap/heap_capacity.hpp"
#include "pages/heap/heap_loans.hpp"
#include "pages/heap/heap_options.hpp"
#include "pages/heap/kept_memory.hpp"

namespace tensorpool::pages {

/// What the shards of one pool's page heap share.
struct HeapCommon {
    HeapCommon(AddressSpace& address_space, limits::CommitBudget& process, unsigned pool_number,
               const HeapOptions& heap_options, statistics::PoolTotals& pool_totals) noexcept
        : space(address_space),
          number(pool_number),
          options(heap_options),
          totals(pool_totals),
          capacity(growth, process, options, totals),
          loans(space, number, options, totals),
          kept(process, options, totals),
          fresh(space, options) {}

    AddressSpace& space;
    const unsigned number;  // of the pool
    const HeapOptions options;
    statistics::PoolTotals& totals;

    /// Held while memory is committed or moved, and while addresses are borrowed or returned. It
    /// comes before the lock of any shard.
    std::mutex growth;
    HeapCapacity capacity;
    HeapLoans loans;
    KeptMemory kept;
    FreshMemory fresh;
    /// The threads that touch free memory. If there are any, no addresses are returned. Guarded by
    /// `growth`.
    unsigned touching = 0;
};

/// While an object of this class exists, free memory may be touched without a lock: the heap keeps
/// its addresses.
class Touching {
public:
    explicit Touching(HeapCommon& common) noexcept : common_(common) {
        const std::lock_guard guard(common.growth);
        ++common.touching;
    }
    ~Touching() {
        const std::lock_guard guard(common_.growth);
        --common_.touching;
    }
    Touching(const Touching&) = delete;
    Touching& operator=(const Touching&) = delete;

private:
    HeapCommon& common_;
};

}  // namespace tensorpool::pages
