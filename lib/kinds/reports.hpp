#pragma once

#include "kinds/kind.hpp"
#include "watch/guards/guarded_area.hpp"

// Reports of misuse. Each returns if the program goes on after it. The block is then left as it is.

namespace tensorpool::kinds {

/// Describes a misuse of what was found at `p`.
inline events::Misuse misuse_of(const PoolParts& pool, events::MisuseKind kind, const void* p,
                                const Found& found) noexcept {
    events::Misuse misuse{.kind = kind, .pointer = p, .owner = pool.options.name};
    if (found.what == Found::What::foreign) return misuse;
    misuse.size = found.usable;
    if (const watch::GuardedBlock* const block = watch::GuardedArea::find(p)) {
        misuse.allocated = {block->allocated.thread, block->allocated.view()};
        misuse.freed = {block->freed.thread, block->freed.view()};
    }
    if (found.requested != 0) misuse.requested = found.requested;
    return misuse;
}
/// Reports that `call` got a pointer that is no block in use that it may have.
inline void report_pointer(PoolParts& pool, const void* p, const Found& found,
                           const char* call = "deallocate") noexcept {
    const char* const name = pool.name();
    const char* const expected = "expected a block of this pool in use";
    if (found.what == Found::What::freed) {
        return events::report_misuse(
            misuse_of(pool, events::MisuseKind::double_free, p, found),
            "pool '%s': %s: block %p was freed twice or was never allocated; %s", name, call, p,
            expected);
    }
    if (found.is_block()) {
        return events::report_misuse(
            misuse_of(pool, events::MisuseKind::wrong_size, p, found),
            "pool '%s': %s: block %p belongs to bucket %s, not to whole pages", name, call, p,
            base::BytesText(found.usable).c_str());
    }
    if (found.what == Found::What::interior) {
        const auto inside = static_cast<std::size_t>(static_cast<const char*>(p) -
                                                     static_cast<const char*>(found.block));
        return events::report_misuse(
            misuse_of(pool, events::MisuseKind::interior_free, p, found),
            "pool '%s': %s: %p lies %zu B inside the block %p of %s; expected the "
            "beginning of the block",
            name, call, p, inside, found.block, base::BytesText(found.usable).c_str());
    }
    const PageEntry entry = pool.entry(p);
    char other[48];
    if (!entry.empty() && !pool.owns(entry) &&
        blocks::thread_registry().name_of(entry.pool_number(), other, sizeof other)) {
        return events::report_misuse(misuse_of(pool, events::MisuseKind::wrong_pool, p, found),
                                     "pool '%s': %s: %p lies in pool '%s'; %s", name, call, p,
                                     other, expected);
    }
    return events::report_misuse(misuse_of(pool, events::MisuseKind::foreign_free, p, found),
                                 "pool '%s': %s: %p was never allocated by this pool; %s", name,
                                 call, p, expected);
}
/// Reports a size that does not fit the block in use at `p`. Returns false if it fits.
inline bool report_size(PoolParts& pool, const void* p, const Found& found,
                        const Stated& stated) noexcept {
    if (stated.bucket == Stated::nothing) return false;
    const char* const name = pool.name();
    const std::size_t bytes = stated.as.bytes;
    if (stated.bucket != found.bucket || bytes > found.usable) {
        events::report_misuse(
            misuse_of(pool, events::MisuseKind::wrong_size, p, found),
            "pool '%s': deallocate: block %p belongs to %s %s, not to %s of %zu B", name, p,
            found.bucket < bucket_count ? "bucket" : "whole pages of",
            base::BytesText(found.usable).c_str(),
            stated.bucket < bucket_count ? "the bucket" : "whole pages", bytes);
        return true;
    }
    if (base::checks_sizes(pool.options.checks) && bytes < found.requested) {
        events::report_misuse(
            misuse_of(pool, events::MisuseKind::wrong_size, p, found),
            "pool '%s': deallocate: block %p was allocated with %zu B and freed with "
            "%zu B",
            name, p, found.requested, bytes);
        return true;
    }
    return false;
}
/// Reports what is wrong with a free of `p`: the pointer or the stated size.
inline void report_free(PoolParts& pool, const void* p, const Stated& stated) noexcept {
    Found found = find(pool, p);
    if (found.is_block() && report_size(pool, p, found, stated)) return;
    // The block is in use again: another thread freed it first, and it was allocated since.
    if (found.is_block()) found.what = Found::What::freed;
    report_pointer(pool, p, found);
}
/// Returns the bytes of a block in use that a reallocation may copy, at most `stated_bytes`, which
/// are reported if the block has fewer. More than the block has would be a neighbour's.
inline std::size_t bytes_to_copy(PoolParts& pool, const void* p, const Found& found,
                                 std::size_t stated_bytes) noexcept {
    const bool knows = pool.is_hardened() && found.requested != 0;
    const std::size_t bytes = knows ? found.requested : found.usable;
    if (stated_bytes <= bytes) return stated_bytes;
    events::report_misuse(misuse_of(pool, events::MisuseKind::wrong_size, p, found),
                          "pool '%s': reallocate: block %p has %zu B, not %zu B", pool.name(), p,
                          bytes, stated_bytes);
    return bytes;
}
/// Returns what `usable_size` does, and reports a pointer that is no block in use.
inline std::size_t checked_usable_size(PoolParts& pool, const void* p) noexcept {
    const Found found = find(pool, p);
    if (found.is_block()) return usable_size(pool, p);
    events::report_misuse(misuse_of(pool, events::MisuseKind::invalid_query, p, found),
                          "pool '%s': usable size: %p is not the beginning of a block in use",
                          pool.name(), p);
    return 0;
}
/// The largest requested size of a block for which a free with this stated size is valid.
inline std::size_t max_requested(const PoolParts& pool, const Stated& stated) noexcept {
    const bool knows = base::checks_sizes(pool.options.checks) && stated.bucket != Stated::nothing;
    return knows ? stated.as.bytes : SIZE_MAX;
}
/// Reports blocks in use of a pool that is about to be destroyed, if its checks include leaks.
inline void report_leaks(const PoolParts& pool) noexcept {
    if (!base::checks_sizes(pool.options.checks)) return;
    const std::uint64_t blocks = pool.counters.allocations() - pool.counters.deallocations();
    if (blocks == 0) return;
    const std::size_t bytes = pool.counters.in_use_bytes();
    events::report_misuse(
        {.kind = events::MisuseKind::leak, .size = bytes, .owner = pool.options.name},
        "pool '%s': destroyed with %llu blocks of %s in use; expected none", pool.name(),
        static_cast<unsigned long long>(blocks), base::BytesText(bytes).c_str());
}

// What AddressSanitizer, MemorySanitizer and Valgrind see of a pool (platform/tools/
// memory_tools.hpp). Nothing here is called without such a tool.

/// Shows a new block to the tool.
inline void mark_new(PoolParts& pool, void* block, std::size_t bytes) noexcept {
    std::size_t usable = detail::bytes_of_block_in_use(block);
    if (usable == 0) usable = find(pool, block).usable;  // of a kind that was added
    platform::mark_allocated({block, bytes, usable});
}
/// Checks the free of a small block and shows it to the tool. Returns false if the program goes on
/// after a misuse. The block is then left as it is. A free that names the wrong block would mark
/// bytes of other blocks, and the tool would report accesses to those. So each free is checked,
/// also in pools that check nothing themselves. The tool knows a free block better than the pool
/// does, which does not search the caches of other threads.
inline bool check_and_mark_freed(PoolParts& pool, void* p, const Stated& stated) noexcept {
    const bool is_closed = platform::is_marked_closed(p);
    if (!is_closed && pool.is_checked()) {
        platform::mark_freed({p, 0, stated.as.bytes});
        return true;
    }
    Found found = find(pool, p);
    const bool is_block = found.is_block();
    if (is_block && !is_closed) {
        if (report_size(pool, p, found, stated)) return false;
        platform::mark_freed({p, 0, found.usable});
        return true;
    }
    // memcheck reports this free with the stacks of the block's allocation and of its first free.
    platform::mark_freed({p, 0, 0});
    if (is_block) found.what = Found::What::freed;
    report_pointer(pool, p, found);
    return false;
}

}  // namespace tensorpool::kinds
