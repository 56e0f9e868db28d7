#pragma once

#include <cstddef>

#include "pages/address_space.hpp"
#include "pages/heap/heap_options.hpp"
#include "pages/heap/page_request.hpp"
#include "statistics/segment/pool_totals.hpp"

namespace tensorpool::pages {

/// The addresses that one page heap borrowed from the address space, in whole granules. Guarded by
/// the heap's lock of growth, except for `bytes` and `give_back`.
class HeapLoans {
public:
    HeapLoans(AddressSpace& space, unsigned pool_number, const HeapOptions& options,
              statistics::PoolTotals& totals) noexcept
        : space_(space), pool_number_(pool_number), numa_(options.numa), totals_(totals) {}

    std::size_t bytes() const noexcept {
        return totals_.reserved_bytes.load(std::memory_order_relaxed);
    }
    /// Contains everything that was ever lent to the marked shard.
    PageRun low() const noexcept { return low_; }
    /// Contains everything that was ever lent to the other shards.
    PageRun ordinary() const noexcept { return ordinary_; }

    /// Borrows `wanted` pages, or `needed` if there is no longer run, for this shard of the heap,
    /// and applies the NUMA policy to them. Returns an empty run on failure.
    PageRun borrow(PageCount needed, PageCount wanted, PageCount alignment,
                   unsigned shard) noexcept;
    /// Counts out pages that are about to be given back.
    void take_out(std::size_t pages) noexcept;
    /// Returns whole granules that were taken out. Their memory is not committed.
    void give_back(PageRun granules) noexcept { space_.take_back(pool_number_, granules); }
    /// Returns everything, including addresses in use, at the end of the heap.
    void give_back_all() noexcept;

private:
    void apply_numa_policy(PageRun run) noexcept;

    AddressSpace& space_;
    const unsigned pool_number_;
    const NumaPolicy numa_;
    statistics::PoolTotals& totals_;
    PageRun low_;
    PageRun ordinary_;
};

}  // namespace tensorpool::pages
