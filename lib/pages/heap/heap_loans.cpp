#include "pages/heap/heap_loans.hpp"

#include <algorithm>

#include "base/atomics.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

PageRun HeapLoans::borrow(PageCount needed, PageCount wanted, PageCount alignment,
                          unsigned shard) noexcept {
    const PageRun run = space_.lend(pool_number_, needed, wanted, alignment, shard);
    if (run.count == 0) return run;
    apply_numa_policy(run);
    PageRun& all = shard == AddressSpace::marked_shard ? low_ : ordinary_;
    const PageNumber end = std::max(all.first + all.count, run.first + run.count);
    all.first = all.count == 0 ? run.first : std::min(all.first, run.first);
    all.count = end - all.first;
    detail::add(totals_.reserved_bytes, run.count * page_bytes);
    base::raise_to(totals_.peak_reserved_bytes, bytes());
    return run;
}

void HeapLoans::take_out(std::size_t pages) noexcept {
    totals_.reserved_bytes.store(bytes() - pages * page_bytes, std::memory_order_relaxed);
}

void HeapLoans::give_back_all() noexcept {
    give_back(ordinary_);
    give_back(low_);
}

void HeapLoans::apply_numa_policy(PageRun run) noexcept {
    void* const address = space_.address_of(run.first);
    const std::size_t bytes = run.count * page_bytes;
    if (numa_.placement == NumaPolicy::Placement::prefer) {
        platform::prefer_numa_node(address, bytes, numa_.node);
    } else if (numa_.placement == NumaPolicy::Placement::interleave) {
        platform::interleave_numa_nodes(address, bytes);
    }
}

}  // namespace tensorpool::pages
