#pragma once

#include <tensorpool/pool_options.hpp>

#include "limits/budget_node.hpp"
#include "pages/page_map.hpp"

namespace tensorpool::pages {

class FolioChoice;

struct HeapOptions {
    std::size_t max_capacity = 0;  // 0: none
    GrowthPolicy growth = {};
    RetentionPolicy retain = {};
    HugePages huge_pages = HugePages::buckets;
    NumaPolicy numa = {};
    /// The budget to which the heap charges what it commits, or nullptr.
    limits::BudgetNode* budget = nullptr;
    /// Whether the memory of former span records stays readable until the heap is destroyed.
    bool keep_records = false;
    std::uint64_t (*clock_ns)() noexcept = nullptr;
    /// Chooses the sizes of pages that growing buckets and `FreshMemory::prefault` request with
    /// `HugePages::buckets`. If it is nullptr, buckets request huge pages and `prefault` none.
    FolioChoice* folios = nullptr;
    std::uint64_t (*thread_time_ns)() noexcept = platform::thread_time_ns;
};

using base::Refusal;

struct PageRequest {
    PageCount pages;
    PageCount alignment = 1;  // in pages, a power of two
    PageKind kind = PageKind::large_in_use;
    bool huge = false;     // the caller will touch all of it; for buckets, also what follows
    bool may_grow = true;  // if false, only free memory is used
};

/// The changes that a call made to the pool's capacity, in bytes, for the owner's callback.
struct Changes {
    std::size_t grown = 0;
    std::size_t given_back = 0;
    PageRun fresh = {};  // the last run that was committed and is not touched yet
};

/// The context of one call through the slow paths of an allocation, from the pool down to the
/// pages. Each layer adds to it, and the pool reports it at the end.
struct SlowPath : Changes {
    Refusal refusal = {};  // the reason if there is no block
    bool may_grow = true;  // if false, only free memory is used; its lack is not a refusal
    /// The bytes that have to be given back before the same growth can succeed; 0 if giving back
    /// does not help.
    std::size_t shortage = 0;
    /// The last granule that requested a huge page and is not touched yet.
    PageRun untried = {};
    /// How the request meets the limits of budgets.
    limits::BudgetRequest budget = {};
};

/// The refusal for lack of memory for records.
inline Refusal no_records() noexcept {
    Refusal refusal = {"memory for the pool's records", 0};
    refusal.advice = "the system refused memory for tensorpool's own records";
    return refusal;
}

}  // namespace tensorpool::pages
