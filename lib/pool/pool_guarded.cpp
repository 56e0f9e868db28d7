// Guarded blocks: some blocks of pools with Checks::sampled.

#include <algorithm>

#include "pages/marked/guarded_area.hpp"
#include "platform/platform.hpp"
#include "pool/faults.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using blocks::GuardPace;
using blocks::SampleDistances;
using pages::GuardedArea;
using pages::GuardedBlock;
using statistics::MisuseKind;
using statistics::report_misuse;

// With this share every block is guarded, as far as that is possible. Tests use it.
constexpr double guard_all = 1;
// A guard takes some 15 µs. What took longer was disturbed: the first stack of a process reads the
// tables of its files, which takes milliseconds.
constexpr std::uint64_t max_cost_ns = 50'000;
// A guarded block takes untouched pages and returns them when it is freed. The value is the cost of
// a page fault (perf/results/workloads.md).
constexpr std::uint64_t page_cost_ns = 2'000;
// The distances keep to the share on average. Two guards may follow each other in a quarter of the
// mean time; a shorter distance means that the thread's rate has risen.
constexpr double max_haste = 4;

}  // namespace

void Pool::set_up_guards() noexcept {
    if (pages::guarded_area().set_up()) stop_at_faults();
}

// Returns a guarded block if it is time for one and one can be had.
void* Pool::guard_if_due(blocks::Cache& cache, std::size_t bytes, std::size_t alignment) noexcept {
    std::int64_t& left = cache.distances.to_guard;
    if (left >= 0) return nullptr;
    const double share = options_.guard_share;
    if (!is_sampled() || share <= 0) {
        left = SampleDistances::never;
        return nullptr;
    }
    if (share >= guard_all) {
        left = 0;
        return allocate_guarded(bytes, alignment);
    }
    GuardPace& pace = cache.guard_pace;
    if (!pace.has_begun()) {
        const std::uint64_t now = platform::thread_time_ns();
        left += pace.begin(now, reinterpret_cast<std::uintptr_t>(&cache) ^ now);
        if (left >= 0) return nullptr;
    }
    const std::uint64_t now = platform::thread_time_ns();
    const std::uint64_t cost_of_pages = bytes / pages::page_bytes * page_cost_ns;
    void* const block = pace.is_due(now, cost_of_pages, max_haste * share)
                            ? allocate_guarded(bytes, alignment)
                            : nullptr;
    const std::uint64_t then = block == nullptr ? now : platform::thread_time_ns();
    if (block != nullptr) pace.count(then, std::min(then - now, max_cost_ns) + cost_of_pages);
    left = pace.next(then, left, share);
    return block;
}

// Counted as a block of whole pages.
void* Pool::allocate_guarded(std::size_t bytes, std::size_t alignment) noexcept {
    // No scope charges a guarded block.
    if (alignment > GuardedArea::max_alignment || is_in_scope()) return nullptr;
    const std::size_t taken = GuardedArea::bytes_for(bytes, alignment);
    if (!heap_.charge_outside(taken)) return nullptr;
    GuardedBlock* const block =
        pages::guarded_area().take(heap_.pool_number(), options_.name.c_str(), bytes, alignment);
    if (block == nullptr) {
        heap_.refund_outside(taken);
        return nullptr;
    }
    record_->totals.guarded_blocks.fetch_add(1, std::memory_order_relaxed);
    record_->totals.guarded_allocations.fetch_add(1, std::memory_order_relaxed);
    count_guarded_allocation(bytes, taken);
    return block->begin;
}

bool Pool::free_guarded(void* p, std::size_t stated_bytes) noexcept {
    const pages::PageEntry entry = heap_.space().map().at(p);
    GuardedBlock* const block = entry.guarded();
    if (block == nullptr) return false;
    record_end_if_recording(p);
    const bool is_ours = entry.pool_number() == heap_.pool_number() && p == block->begin;
    if (is_ours) check_guarded(p, *block, stated_bytes);
    if (!is_ours || !GuardedArea::end_use(*block)) {
        misused(p, find(p));
        return true;
    }
    if (block->mark != nullptr) block->mark->on_free(block->requested);
    const std::size_t taken = block->page_bytes_in_use();
    count_guarded_deallocation(taken);
    record_->totals.guarded_blocks.fetch_sub(1, std::memory_order_relaxed);
    pages::guarded_area().close(*block);
    heap_.refund_outside(taken);
    return true;
}

// A block with damage, or freed with a wrong size, is a valid block all the same, so the program
// may go on.
void Pool::check_guarded(void* p, const GuardedBlock& block, std::size_t stated_bytes) noexcept {
    if (block.state.load(std::memory_order_acquire) != GuardedBlock::State::in_use) return;
    const char* const pool = options_.name.c_str();
    const Finding finding = find(p);
    const bool is_stated = stated_bytes != SIZE_MAX;
    const auto bucket = [](std::size_t bytes) { return std::min(bucket_of(bytes), bucket_count); };
    if (is_stated && bucket(stated_bytes) != bucket(block.requested)) {
        report_misuse(misuse_of(MisuseKind::wrong_size, p, finding),
                      "pool '%s': deallocate: block %p was allocated with %zu B and freed with %zu "
                      "B",
                      pool, p, block.requested, stated_bytes);
    }
    const void* const damaged = block.find_damage(GuardedArea::address_of(block));
    if (damaged == nullptr) return;
    const auto offset = static_cast<const char*>(damaged) - block.begin;
    report_misuse(
        misuse_of(MisuseKind::overrun, p, finding),
        "pool '%s': deallocate: the byte at %p was written, at offset %td of the block %p "
        "of %zu B",
        pool, damaged, offset, p, block.requested);
}

Pool::Finding Pool::find_guarded(const void* p) noexcept {
    const pages::PageEntry entry = heap_.space().map().at(p);
    const GuardedBlock* const block = entry.guarded();
    if (block == nullptr || entry.pool_number() != heap_.pool_number()) return {};
    Finding finding{.what = block->begin == p ? Finding::What::block : Finding::What::interior,
                    .block = block->begin,
                    .bucket = std::min(bucket_of(block->requested), bucket_count),
                    .usable = block->requested,
                    .requested = block->requested};
    const auto offset = static_cast<const char*>(p) - block->begin;
    if (block->state.load(std::memory_order_acquire) != GuardedBlock::State::in_use) {
        finding.what = Finding::What::freed;
    } else if (offset < 0 || offset >= static_cast<std::ptrdiff_t>(block->requested)) {
        finding.what = Finding::What::foreign;
    }
    return finding;
}

}  // namespace abi_2
}  // namespace tensorpool::detail
