// The model's checks of the pool; its other functions are in pool_model.cpp.

#include <cstdarg>
#include <cstdio>
#include <iterator>

#include "models/pattern.hpp"
#include "models/pool_model.hpp"

namespace tensorpool::testing {
namespace {

constexpr std::size_t page_bytes = 4096;

void expect(const char* what, std::uint64_t value, std::uint64_t expected) {
    if (value == expected) return;
    mismatch("%s is %zu, expected %zu", what, std::size_t{value}, std::size_t{expected});
}

}  // namespace

void mismatch(const char* format, ...) {
    char text[256];
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    throw Mismatch(text);
}

void PoolModel::check() const {
    for (const auto& [at, block] : blocks_) check_block(at, block);
    check_statistics();
}

void PoolModel::check_empty() const {
    check_statistics();
    const PoolStatistics is = subject_.pool().statistics();
    expect("in use at the end", is.in_use_bytes, 0);
    expect("parked at the end", is.parked_bytes, 0);
    expect("capacity at the end", is.capacity_bytes, 0);
    expect("blocks in use at the end", is.allocations - is.deallocations, 0);
}

void PoolModel::check_address(const void* p) const {
    const auto address = reinterpret_cast<std::uintptr_t>(p);
    auto above = blocks_.upper_bound(address);
    const bool any_below = above != blocks_.begin();
    const auto below = any_below ? std::prev(above) : above;
    const bool inside = any_below && address - below->first < extent_of(below->second);
    // A freed block may wait in a cache, which a pool that checks every call does not have.
    const bool exact = options_.checks != Checks::off && options_.checks != Checks::sampled;
    if (subject_.owns(p) != inside && (inside || exact)) {
        mismatch("owns(%p) is not %d", p, inside ? 1 : 0);
    }
    const std::size_t usable = inside && address == below->first ? below->second.usable : 0;
    if (subject_.pool().usable_size(p) != usable && (inside || exact)) {
        mismatch("usable_size(%p) is %zu, expected %zu", p, subject_.pool().usable_size(p), usable);
    }
}

void PoolModel::check_block(std::uintptr_t at, const Block& block) const {
    const void* const p = reinterpret_cast<const void*>(at);
    const std::size_t same =
        Pattern(block.mark).first_difference(p, block.requested, block.requested);
    if (same != block.requested)
        mismatch("byte %zu of %zu at %p has changed", same, block.requested, p);
}

void PoolModel::check_statistics() const {
    const PoolStatistics is = subject_.pool().statistics();
    expect("in use", is.in_use_bytes, in_use_bytes_);
    expect("get_total_allocated", subject_.pool().get_total_allocated(), in_use_bytes_);
    expect("allocations", is.allocations, totals_.allocations);
    expect("get_allocation_count", subject_.pool().get_allocation_count(), totals_.allocations);
    expect("deallocations", is.deallocations, totals_.deallocations);
    expect("get_deallocation_count", subject_.pool().get_deallocation_count(),
           totals_.deallocations);
    expect("requested", is.requested_bytes, totals_.requested);
    expect("allocated", is.allocated_bytes, totals_.allocated);
    expect("failures", is.failures, totals_.failures);
    std::uint64_t placed =
        is.large.in_use_bytes + is.large.parked_bytes + is.cached_bytes + is.free_bytes;
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const BucketStatistics& one = is.buckets[bucket];
        expect("a bucket's bytes in use", one.in_use_bytes, in_use_by_bucket_[bucket]);
        placed += one.capacity_bytes;
        if (one.in_use_bytes + one.parked_bytes > one.capacity_bytes) {
            mismatch("bucket %u holds more than its capacity", bucket);
        }
    }
    expect("large bytes in use", is.large.in_use_bytes, in_use_by_bucket_[detail::bucket_count]);
    // Whole pages in the quarantine are of no other kind.
    const std::uint64_t waiting = is.capacity_bytes - placed;
    if (waiting % page_bytes != 0 || waiting > is.quarantined_bytes) {
        expect("capacity", is.capacity_bytes, placed);
    }
    expect("get_total_capacity", subject_.pool().get_total_capacity(), is.capacity_bytes);
    if (options_.max_capacity != 0 && is.capacity_bytes > options_.max_capacity) {
        mismatch("capacity is %zu, beyond the limit", std::size_t{is.capacity_bytes});
    }
    if (is.peak_in_use_bytes < is.in_use_bytes || is.peak_capacity_bytes < is.capacity_bytes) {
        mismatch("a peak of %zu is below the present value", std::size_t{is.peak_in_use_bytes});
    }
}

}  // namespace tensorpool::testing
