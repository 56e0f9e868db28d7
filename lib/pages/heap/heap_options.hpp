#pragma once

#include <cstddef>
#include <cstdint>

#include <tensorpool/pool_options.hpp>

#include "limits/budget_node.hpp"
#include "pages/heap/folio_choice.hpp"
#include "platform/platform.hpp"

namespace tensorpool::pages {

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

}  // namespace tensorpool::pages
