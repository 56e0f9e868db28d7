#include "models/pool_model.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "models/pattern.hpp"

namespace tensorpool::testing {
namespace {

constexpr std::size_t page_bytes = 4096;
constexpr std::size_t default_alignment = 64;
// More than any machine of the tests has: such requests are refused.
constexpr std::size_t address_space_bytes = std::size_t{1} << 40;

// Returns whether `usable` is a valid size for a request and alignment: the size of a bucket, or
// whole pages of which at most an eighth is rounding.
bool is_usable_size(std::size_t usable, std::size_t requested, std::size_t alignment) {
    const std::size_t at_least = std::max({requested, alignment, default_alignment});
    const bool by_bucket = alignment <= default_alignment ? requested <= detail::largest_block_bytes
                                                          : at_least <= 2048;
    if (by_bucket) return usable == std::bit_ceil(at_least);
    const std::size_t pages = (requested + page_bytes - 1) / page_bytes;
    return usable % page_bytes == 0 && usable >= pages * page_bytes &&
           usable <= (pages + pages / 8) * page_bytes;
}

unsigned bucket_of_usable(std::size_t usable, std::size_t requested, std::size_t alignment) {
    const bool by_bucket = alignment <= default_alignment ? requested <= detail::largest_block_bytes
                                                          : std::max(requested, alignment) <= 2048;
    return by_bucket ? detail::bucket_of(usable) : detail::bucket_count;
}

}  // namespace

PoolModel::PoolModel(Subject& subject, const PoolOptions& options, Refusals refusals)
    : subject_(subject), options_(options), refusals_(refusals) {
    check_statistics();
}

template <class Call>
void* PoolModel::call(Call&& call) {
    try {
        return call();
    } catch (const AllocationError& error) {
        if (error.in_use() != in_use_bytes_) {
            mismatch("an error reports %zu B in use, expected %zu", error.in_use(), in_use_bytes_);
        }
        return nullptr;
    }
}

bool PoolModel::allocate(std::size_t bytes) {
    return keep(call([&] { return subject_.allocate(bytes); }), bytes, 0);
}

bool PoolModel::allocate(std::size_t bytes, std::size_t alignment) {
    return keep(call([&] { return subject_.allocate(bytes, alignment); }), bytes, alignment);
}

bool PoolModel::try_allocate(std::size_t bytes, std::size_t alignment) {
    return keep(subject_.pool().try_allocate(bytes, alignment), bytes, alignment);
}

bool PoolModel::allocate_zeroed(std::size_t count, std::size_t element_bytes) {
    const std::size_t bytes = count * element_bytes;
    void* const p = call([&] { return subject_.allocate_zeroed(count, element_bytes); });
    const std::size_t zeros = p == nullptr ? 0 : first_not_zero(p, bytes);
    if (p != nullptr && zeros != bytes) mismatch("byte %zu of %zu is not zero", zeros, bytes);
    return keep(p, bytes, 0);
}

bool PoolModel::reallocate(std::size_t k, std::size_t new_bytes) {
    const auto found = nth(k);
    if (found == blocks_.end() || found->second.alignment > default_alignment) return false;
    const Block block = found->second;
    void* const p = reinterpret_cast<void*>(found->first);
    check_block(found->first, block);
    void* const moved = call([&] { return subject_.reallocate(p, block.requested, new_bytes); });
    if (moved == nullptr && new_bytes != 0) return refused(new_bytes, 0);
    const std::size_t kept = std::min(block.requested, new_bytes);
    const std::size_t same =
        moved == nullptr ? 0 : Pattern(block.mark).first_difference(moved, kept, block.requested);
    if (same != kept) mismatch("reallocate kept %zu B of %zu", same, kept);
    blocks_.erase(found);
    count_in_use(block, -1);
    if (moved != p || block.held != block.usable) {
        if (moved == p) mismatch("a protected block of %zu B stayed in place", block.requested);
        ++totals_.deallocations;
        return keep(moved, new_bytes, 0);
    }
    if (new_bytes > block.usable && block.usable > detail::largest_block_bytes) {
        // Whole pages may have been added to the block in place.
        const std::size_t usable = subject_.pool().usable_size(p);
        if (!is_usable_size(usable, new_bytes, 0)) {
            mismatch("%zu B resulted in a block of %zu, extended in place", new_bytes, usable);
        }
        totals_.requested += new_bytes - block.usable;
        totals_.allocated += usable - block.usable;
        insert(p, {new_bytes, usable, 0, next_mark_++, usable, block.bucket});
        return true;
    }
    // In place the size stays, even if half of it is unused. Such a call is not counted.
    const bool same_bucket = is_usable_size(block.usable, new_bytes, 0);
    if (!same_bucket && (new_bytes > block.usable || new_bytes < block.usable / 2)) {
        mismatch("%zu B stayed in a block of %zu", new_bytes, block.usable);
    }
    insert(p, {new_bytes, block.usable, 0, next_mark_++, block.held, block.bucket});
    return true;
}

void PoolModel::deallocate(std::size_t k, How how) {
    const auto found = nth(k);
    if (found == blocks_.end()) return;
    const auto [at, block] = *found;
    check_block(at, block);
    blocks_.erase(found);
    count_in_use(block, -1);
    ++totals_.deallocations;
    give_back(reinterpret_cast<void*>(at), block, how);
    check_statistics();
}

void PoolModel::give_back(void* p, const Block& block, How how) {
    const bool aligned = block.alignment > default_alignment;
    if (how == How::unsized || (aligned && how != How::with_alignment)) {
        subject_.deallocate(p);
    } else if (how == How::with_alignment) {
        subject_.deallocate(p, block.requested, std::max(block.alignment, std::size_t{1}));
    } else {
        subject_.deallocate(p, how == How::with_size ? block.requested : block.usable);
    }
}

void PoolModel::deallocate_all() {
    // Alternately from both ends.
    while (!blocks_.empty())
        deallocate(count() % 2 == 0 ? 0 : count() - 1, static_cast<How>(count() % 4));
}

bool PoolModel::reserve(std::size_t capacity) {
    try {
        subject_.pool().reserve(capacity);
    } catch (const AllocationError&) {
        return refused(capacity, capacity);
    }
    const std::size_t got = subject_.pool().get_total_capacity();
    if (got < capacity) mismatch("%zu B were reserved, capacity is %zu", capacity, got);
    check_statistics();
    return true;
}

void PoolModel::trim() {
    const PoolStatistics before = subject_.pool().statistics();
    const std::size_t given_back = subject_.pool().trim();
    const PoolStatistics after = subject_.pool().statistics();
    if (before.capacity_bytes - given_back != after.capacity_bytes) {
        mismatch("trim gave back %zu B of %zu, capacity is now %zu", given_back,
                 std::size_t{before.capacity_bytes}, std::size_t{after.capacity_bytes});
    }
    if (refusals_ == Refusals::none && after.free_bytes + after.cached_bytes != 0) {
        mismatch("%zu B are free after trim", std::size_t{after.free_bytes + after.cached_bytes});
    }
    check_statistics();
}

void PoolModel::count_others(std::uint64_t calls, std::size_t bytes, std::uint64_t failed) {
    totals_.failures += failed;
    totals_.allocations += calls;
    totals_.deallocations += calls;
    totals_.requested += calls * bytes;
    const PoolStatistics is = subject_.pool().statistics();
    const std::uint64_t allocated = is.allocated_bytes - totals_.allocated;
    const std::size_t unprotected = detail::bucket_bytes(detail::bucket_of(bytes));
    const bool is_exact = !is_hardened() && is.guarded_allocations == guarded_;
    if (is_exact ? allocated != calls * unprotected : allocated < calls * bytes) {
        mismatch("another thread allocated %zu B", std::size_t{allocated});
    }
    totals_.allocated += allocated;
    guarded_ = is.guarded_allocations;
    check_statistics();
}

bool PoolModel::keep(void* p, std::size_t bytes, std::size_t alignment) {
    if (bytes == 0 && p != nullptr) mismatch("a request for 0 bytes returned a block at %p", p);
    if (p == nullptr) return bytes == 0 || refused(std::max(bytes, alignment), 0);
    const Block block = measure(p, bytes, alignment);
    if (reinterpret_cast<std::uintptr_t>(p) % std::max(alignment, default_alignment) != 0) {
        mismatch("%p is not aligned to %zu", p, std::max(alignment, default_alignment));
    }
    ++totals_.allocations;
    totals_.requested += bytes;
    totals_.allocated += block.held;
    insert(p, block);
    return true;
}

/// Returns a new block with the sizes that the pool reports, after checking them.
PoolModel::Block PoolModel::measure(void* p, std::size_t bytes, std::size_t alignment) {
    const PoolStatistics is = subject_.pool().statistics();
    const bool is_guarded = is.guarded_allocations != guarded_;
    guarded_ = is.guarded_allocations;
    Block block{.requested = bytes,
                .usable = subject_.pool().usable_size(p),
                .alignment = alignment,
                .mark = next_mark_++,
                .held = std::size_t{is.allocated_bytes} - std::size_t{totals_.allocated},
                .bucket = detail::bucket_count};
    for (unsigned bucket = 0; bucket < detail::bucket_count; ++bucket) {
        const bool has_grown = is.buckets[bucket].in_use_bytes != in_use_by_bucket_[bucket];
        if (has_grown) block.bucket = bucket;
    }
    check_size(block, is_hardened() || is_guarded);
    return block;
}

// A protected block has exactly the bytes that were requested, with canary and guard beyond them.
void PoolModel::check_size(const Block& block, bool is_protected) const {
    const auto [bytes, usable, alignment, mark, held, bucket] = block;
    if (!is_protected) {
        if (!is_usable_size(usable, bytes, alignment)) {
            mismatch("usable size is %zu of %zu aligned to %zu", usable, bytes, alignment);
        }
        if (held != usable || bucket != bucket_of_usable(usable, bytes, alignment)) {
            mismatch("a block of %zu B is counted as %zu", usable, held);
        }
        return;
    }
    const std::size_t beyond = 2 * page_bytes + std::max(alignment, default_alignment);
    if (usable != bytes || held < bytes || held > 2 * bytes + beyond) {
        mismatch("a protected block of %zu B has %zu, of %zu", bytes, usable, held);
    }
    if (bucket != detail::bucket_count && held != detail::bucket_bytes(bucket)) {
        mismatch("a block of bucket %u is counted as %zu", bucket, held);
    }
}

// Of a hardened block, the pool owns what it holds.
std::size_t PoolModel::extent_of(const Block& block) const {
    return is_hardened() ? block.held : block.usable;
}

void PoolModel::insert(void* p, const Block& block) {
    const auto at = reinterpret_cast<std::uintptr_t>(p);
    const auto next = blocks_.lower_bound(at);
    if ((next != blocks_.end() && next->first - at < extent_of(block)) ||
        (next != blocks_.begin() &&
         at - std::prev(next)->first < extent_of(std::prev(next)->second))) {
        mismatch("the block at %p of %zu B overlaps another", p, extent_of(block));
    }
    Pattern(block.mark).write(p, block.requested);
    blocks_.emplace_hint(next, at, block);
    count_in_use(block, 1);
    check_address(p);
    check_address(static_cast<char*>(p) + block.usable - 1);
    check_statistics();
}

// `limit` is the capacity that the request would have needed; 0 if unknown.
bool PoolModel::refused(std::size_t bytes, std::size_t limit) {
    const bool with_reason =
        bytes > std::min(options_.max_allocation, address_space_bytes) ||
        (limit != 0 && options_.max_capacity != 0 && limit > options_.max_capacity);
    if (refusals_ == Refusals::none && !with_reason) mismatch("%zu B were refused", bytes);
    ++totals_.failures;
    check_statistics();
    return false;
}

void PoolModel::count_in_use(const Block& block, std::ptrdiff_t sign) {
    const auto bytes = static_cast<std::size_t>(sign * static_cast<std::ptrdiff_t>(block.held));
    in_use_bytes_ += bytes;
    in_use_by_bucket_[block.bucket] += bytes;
}

PoolModel::Blocks::iterator PoolModel::nth(std::size_t k) {
    if (blocks_.empty()) return blocks_.end();
    const auto at = static_cast<std::ptrdiff_t>(k % blocks_.size());
    const auto from_end = static_cast<std::ptrdiff_t>(blocks_.size()) - at;
    return at < from_end ? std::next(blocks_.begin(), at) : std::prev(blocks_.end(), from_end);
}

}  // namespace tensorpool::testing
