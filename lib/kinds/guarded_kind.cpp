#include "kinds/reports.hpp"
#include "kinds/watcher.hpp"

namespace tensorpool::kinds {
namespace {

using events::MisuseKind;
using events::report_misuse;
using watch::GuardedArea;
using watch::GuardedBlock;

// A block with damage, or freed with a wrong size, is a valid block all the same, so the program
// may go on.
void check(PoolParts& pool, void* p, const GuardedBlock& block, const Stated& stated) noexcept {
    if (block.state.load(std::memory_order_acquire) != GuardedBlock::State::in_use) return;
    const Found found = find_guarded(pool, p, pool.entry(p));
    const auto bucket = [](std::size_t bytes) { return std::min(bucket_of(bytes), bucket_count); };
    if (stated.has_size() && bucket(stated.as.bytes) != bucket(block.requested)) {
        report_misuse(misuse_of(pool, MisuseKind::wrong_size, p, found),
                      "pool '%s': deallocate: block %p was allocated with %zu B and freed with %zu "
                      "B",
                      pool.name(), p, block.requested, stated.as.bytes);
    }
    const void* const damaged = block.find_damage(GuardedArea::address_of(block));
    if (damaged == nullptr) return;
    const auto offset = static_cast<const char*>(damaged) - block.begin;
    report_misuse(
        misuse_of(pool, MisuseKind::overrun, p, found),
        "pool '%s': deallocate: the byte at %p was written, at offset %td of the block %p "
        "of %zu B",
        pool.name(), damaged, offset, p, block.requested);
}

}  // namespace

// Two guards may follow each other in a quarter of the mean time, and time is saved for one more.
watch::Terms GuardWatcher::terms(const PoolParts& pool) const noexcept {
    return {.share = pool.options.guard_share,
            .first_cost_ns = 30'000,  // perf/results/checks.md
            .enough = 1,
            .max_saved = 2,
            .haste = 0.25,
            .blocks_per_look = 1};
}

// With a share of 1, every block is guarded, as far as that is possible. Tests use it.
double GuardWatcher::interval(const PoolParts& pool) const noexcept {
    return pool.options.guard_share >= 1 ? every_request : static_cast<double>(pages::page_bytes);
}

// No scope charges a guarded block. It is counted as a block of whole pages.
void* GuardWatcher::serve(PoolParts& pool, const Request& request) const noexcept {
    const auto [bytes, alignment, first_touch] = request;
    if (alignment > GuardedArea::max_alignment || pool.is_in_scope()) return nullptr;
    const std::size_t taken = GuardedArea::bytes_for(bytes, alignment);
    if (!pool.heap.capacity().charge_outside(taken)) return nullptr;
    GuardedBlock* const block =
        watch::guarded_area().take(pool.number(), pool.name(), bytes, alignment);
    if (block == nullptr) {
        pool.heap.capacity().refund_outside(taken);
        return nullptr;
    }
    pool.totals().guarded_blocks.fetch_add(1, std::memory_order_relaxed);
    pool.totals().guarded_allocations.fetch_add(1, std::memory_order_relaxed);
    count_large_allocation(pool, bytes, taken);
    return block->begin;
}

// It takes untouched pages. The value is the cost of a page fault (perf/results/workloads.md).
double GuardWatcher::later_cost(const Request& request) const noexcept {
    constexpr std::size_t page_cost_ns = 2'000;
    return static_cast<double>(request.bytes / pages::page_bytes * page_cost_ns);
}

bool free_guarded(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                  Changes&) noexcept {
    GuardedBlock& block = *watch::guarded_block(entry);
    const bool begins = p == block.begin;
    if (begins) check(pool, p, block, stated);
    if (!begins || !GuardedArea::end_use(block)) {
        report_pointer(pool, p, find_guarded(pool, p, entry));
        return false;
    }
    const FreeCost cost(block.watcher);
    if (block.mark != nullptr) block.mark->on_free(block.requested);
    const std::size_t taken = block.page_bytes_in_use();
    count_large_free(pool, taken, Held::no);
    pool.totals().guarded_blocks.fetch_sub(1, std::memory_order_relaxed);
    watch::guarded_area().close(block);
    pool.heap.capacity().refund_outside(taken);
    return false;
}

Found find_guarded(PoolParts&, const void* p, PageEntry entry) noexcept {
    const GuardedBlock& block = *watch::guarded_block(entry);
    Found found{.what = block.begin == p ? Found::What::block : Found::What::interior,
                .block = block.begin,
                .bucket = std::min(bucket_of(block.requested), bucket_count),
                .usable = block.requested,
                .requested = block.requested};
    const auto offset = static_cast<const char*>(p) - block.begin;
    if (block.state.load(std::memory_order_acquire) != GuardedBlock::State::in_use) {
        found.what = Found::What::freed;
    } else if (offset < 0 || offset >= static_cast<std::ptrdiff_t>(block.requested)) {
        found.what = Found::What::foreign;
    }
    return found;
}

std::size_t recorded_bytes_of_guarded(const void*, PageEntry entry) noexcept {
    return entry.placed()->requested;
}

}  // namespace tensorpool::kinds
