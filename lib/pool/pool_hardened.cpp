// Blocks of pools with Checks::hardened. A freed block waits in the quarantine: a small one filled
// with zeros, one of whole pages inaccessible. Every block has a canary behind what was requested,
// and one of whole pages also a page that may not be accessed.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/alignment.hpp"
#include "base/find_nonzero.hpp"
#include "blocks/bucket_states.hpp"
#include "blocks/thread_registry.hpp"
#include "pages/large_blocks.hpp"
#include "platform/memory/guard_pages.hpp"
#include "platform/platform.hpp"
#include "pool/faults.hpp"
#include "pool/pool.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using base::Canary;
using pages::BlockOrigin;
using pages::Changes;
using pages::SlowPath;
using pages::Span;
using statistics::MisuseKind;
using statistics::report_misuse;

/// The pages of a block of whole pages that may not be accessed: all behind its canary, or all if 0
/// bytes were requested. There are none where the block shares larger pages of the system with a
/// neighbour.
struct Tail {
    Tail(const Span& span, std::size_t requested) noexcept
        : begin(!span.is_of_whole_pages() ? span.bytes()
                : requested == 0          ? 0
                                          : base::align_up(requested + Canary::min_bytes, unit())),
          bytes(span.bytes() - begin) {}
    static std::size_t unit() noexcept {
        return std::max(pages::page_bytes, platform::page_bytes());
    }

    std::size_t begin;  // offset in the block
    std::size_t bytes;
};

const char* allocation_of(AllocatedBy by) noexcept {
    constexpr const char* names[] = {"the pool", "malloc", "new", "new[]"};
    return names[static_cast<unsigned>(by)];
}
const char* free_of(AllocatedBy by) noexcept {
    constexpr const char* names[] = {"the pool", "free", "delete", "delete[]"};
    return names[static_cast<unsigned>(by)];
}

// At most so many blocks leave the quarantine at once.
constexpr unsigned batch = 64;

}  // namespace

void Pool::harden() noexcept {
    canary_ = Canary(platform::random_bits());
    buckets_.quarantine().limit(options_.quarantine_bytes, record_->totals.quarantined_bytes);
    stop_at_faults();
    if (is_global()) {
        pages::set_exact_size(heap_.pool_number(), [](const void* p) noexcept {
            return PoolAccess::of(global_pool.pool).checked_usable_size(p);
        });
    }
}

std::size_t Pool::checked_usable_size(const void* p) noexcept {
    const Finding finding = find(p);
    if (finding.what == Finding::What::block) return usable_size(p);
    report_misuse(misuse_of(MisuseKind::invalid_query, p, finding),
                  "pool '%s': usable size: %p is not the beginning of a block in use",
                  options_.name.c_str(), p);
    return 0;
}

void* Pool::try_hardened(std::size_t bytes, std::size_t alignment, SlowPath& path) noexcept {
    if (bytes > pages::max_large_bytes) return allocate_large(bytes, alignment, path);
    const unsigned bucket = bucket_for(bytes + Canary::min_bytes, alignment);
    // The quarantine does not keep small blocks of budgets apart, so these get pages of their own.
    if (bucket == bucket_count || is_in_scope())
        return allocate_hardened_pages(bytes, alignment, path);
    void* const block = allocate_block(buckets_, bucket, bytes, alignment, path);
    if (block != nullptr) begin_hardened_use(block, bytes, bucket, BlockOrigin(alignment));
    return block;
}

void* Pool::allocate_nothing(std::size_t alignment, SlowPath& path) noexcept {
    if (!is_hardened()) return nullptr;
    void* const block = allocate_hardened_pages(0, std::max(alignment, smallest_block_bytes), path);
    end_slow_path(path);
    return block;
}

void Pool::begin_hardened_use(void* p, std::size_t bytes, unsigned bucket,
                              BlockOrigin origin) noexcept {
    char* const block = static_cast<char*>(p);
    if (!buckets_[bucket].begin_first_use(block, bytes, origin)) [[unlikely]]
        stop_at_wrong_block(block, bucket_bytes(bucket));
    // Bytes behind the canary are checked when a larger request gets them.
    check_still_zero(block, Canary::end(bytes, bucket_bytes(bucket)), bucket_bytes(bucket));
    canary_.fill(block, bytes, bucket_bytes(bucket));
}

void Pool::stop_at_wrong_block(const char* block, std::size_t bytes) noexcept {
    statistics::stop_at_misuse({.kind = MisuseKind::corrupt_record,
                                .pointer = block,
                                .size = bytes,
                                .owner = options_.name},
                               "pool '%s': allocate: %p, from a record of free blocks, is not the "
                               "beginning of a free block of %zu B",
                               options_.name.c_str(), static_cast<const void*>(block), bytes);
}

void* Pool::allocate_hardened_pages(std::size_t bytes, std::size_t alignment,
                                    SlowPath& path) noexcept {
    const std::size_t more = Tail::unit() + (bytes == 0 ? 0 : Canary::min_bytes);
    char* const block = static_cast<char*>(allocate_large(bytes + more, alignment, path));
    if (block == nullptr) return nullptr;
    Span& span = *heap_.space().map().at(block).span();
    // Relaxed: the requested bytes, which are stored next, publish it.
    span.origin.store(BlockOrigin(alignment), std::memory_order_relaxed);
    span.requested_bytes.store(bytes == 0 ? Span::nothing : bytes, std::memory_order_release);
    count_large_request_as(bytes, bytes + more);
    const Tail tail(span, bytes);
    if (tail.begin != 0) canary_.fill(block, bytes, tail.begin);
    // If the system refuses, the block has no guard; its canary stays.
    if (tail.bytes != 0) (void)platform::install_guard(block + tail.begin, tail.bytes);
    return block;
}

void Pool::check_still_zero(char* block, std::size_t bytes, std::size_t usable) noexcept {
    const std::size_t at = base::find_nonzero(block, bytes);
    if (at == bytes) [[likely]]
        return;
    report_misuse({.kind = MisuseKind::write_after_free,
                   .pointer = block,
                   .size = usable,
                   .owner = options_.name},
                  "pool '%s': allocate: the free block %p was written at offset %zu",
                  options_.name.c_str(), static_cast<void*>(block), at);
    std::memset(block, 0, bytes);
}

bool Pool::check_canary(const char* block, std::size_t requested, std::size_t usable) noexcept {
    if (requested > usable - Canary::min_bytes) [[unlikely]]
        stop_at_wrong_record(block, requested, usable);
    const std::size_t at = canary_.find_damage(block, requested, usable);
    if (at != usable) [[unlikely]]
        report_overrun(block, requested, usable, at);
    return at == usable;
}

void Pool::stop_at_wrong_record(const char* block, std::size_t requested,
                                std::size_t usable) noexcept {
    statistics::stop_at_misuse({.kind = MisuseKind::corrupt_record,
                                .pointer = block,
                                .size = usable,
                                .requested = requested,
                                .owner = options_.name},
                               "pool '%s': deallocate: the record of block %p says that %zu B of "
                               "%zu were requested",
                               options_.name.c_str(), static_cast<const void*>(block), requested,
                               usable);
}

// A block with a damaged canary is a valid block all the same, so the program may go on.
void Pool::report_overrun(const char* block, std::size_t requested, std::size_t usable,
                          std::size_t at) noexcept {
    report_misuse({.kind = MisuseKind::overrun,
                   .pointer = block,
                   .size = usable,
                   .requested = requested,
                   .owner = options_.name},
                  "pool '%s': deallocate: block %p of %zu B was written at offset %zu, beyond its "
                  "end",
                  options_.name.c_str(), static_cast<const void*>(block), requested, at);
}

// A block that is freed in a wrong way is a valid block, so the program may go on.
void Pool::check_stated(const void* p, const FreedAs& freed, const blocks::Bucket::EndedUse& use,
                        std::size_t usable) noexcept {
    statistics::Misuse misuse{.kind = MisuseKind::wrong_size,
                              .pointer = p,
                              .size = usable,
                              .requested = use.requested,
                              .owner = options_.name};
    const std::size_t alignment = std::max(freed.alignment, BlockOrigin::default_alignment);
    if (freed.bytes != FreedAs::unknown && freed.bytes != use.requested) {
        report_misuse(misuse,
                      "pool '%s': deallocate: block %p was allocated with %zu B and freed with "
                      "%zu B",
                      options_.name.c_str(), p, use.requested, freed.bytes);
    } else if (freed.alignment != FreedAs::unknown && alignment != use.origin.alignment()) {
        report_misuse(misuse,
                      "pool '%s': deallocate: block %p was allocated with an alignment of %zu B "
                      "and freed with one of %zu B",
                      options_.name.c_str(), p, use.origin.alignment(), alignment);
    } else if (freed.by != use.origin.by() && freed.by != AllocatedBy::pool &&
               use.origin.by() != AllocatedBy::pool) {
        misuse.kind = MisuseKind::mismatched_free;
        report_misuse(misuse, "pool '%s': deallocate: block %p was allocated by %s and freed by %s",
                      options_.name.c_str(), p, allocation_of(use.origin.by()), free_of(freed.by));
    }
}

void Pool::record_allocated_by(void* block, AllocatedBy by) noexcept {
    if (!is_hardened()) return;
    const pages::PageEntry entry = heap_.space().map().at(block);
    if (entry.pool_number() != heap_.pool_number() || !entry.has_span()) return;
    std::atomic<BlockOrigin>& origin =
        entry.is_bucket() ? buckets_[entry.bucket()].origin_of(block, entry) : entry.span()->origin;
    // Relaxed: the caller holds the block.
    const BlockOrigin old = origin.load(std::memory_order_relaxed);
    if (by == AllocatedBy::new_array && old.by() != AllocatedBy::new_object) return;
    origin.store(BlockOrigin(old.alignment(), by), std::memory_order_relaxed);
}

void Pool::deallocate_hardened(void* p, const FreedAs& freed) noexcept {
    record_end_if_recording(p);
    const pages::PageEntry entry = heap_.space().map().at(p);
    const bool is_small = entry.is_bucket() && entry.pool_number() == heap_.pool_number();
    is_small ? free_hardened(p, entry, freed) : free_hardened_pages(p, freed);
}

// Only one thread ends the use, so the block is then the caller's alone.
void Pool::free_hardened(void* p, pages::PageEntry entry, const FreedAs& freed) noexcept {
    char* const block = static_cast<char*>(p);
    const std::size_t bytes = bucket_bytes(entry.bucket());
    blocks::Bucket::EndedUse use;
    if (!buckets_[entry.bucket()].end_use(p, entry, SIZE_MAX, &use)) return refuse(p, {});
    check_stated(p, freed, use, bytes);
    // Behind an undamaged canary the block holds zeros already. If it does not, a later request for
    // those bytes finds it.
    const bool is_whole = check_canary(block, use.requested, bytes);
    std::memset(block, 0, is_whole ? Canary::end(use.requested, bytes) : bytes);
    count_hardened_free(entry.bucket());
    quarantine({p, bytes});
}

// The block stays in use until the checks are done.
void Pool::free_hardened_pages(void* p, const FreedAs& freed) noexcept {
    const Finding found = find(p);
    if (found.what != Finding::What::block) return misused(p, found);
    // A server frees a block of its own, and may have to note the free of one of the pool.
    const bool is_served = heap_.space().map().at(p).kind() == pages::PageKind::served;
    const bool is_freed = free_served(p);
    if (is_served) return is_freed ? void() : refuse(p, {});
    Span& span = *heap_.space().map().at(p).span();
    const Tail tail(span, found.requested);
    check_stated(p, freed, {found.requested, span.origin.load(std::memory_order_relaxed)},
                 span.bytes());
    if (tail.begin != 0) (void)check_canary(static_cast<char*>(p), found.requested, tail.begin);
    if (!large_.end_use(p, heap_.space().map().at(p), 0, SIZE_MAX)) return refuse(p, {});
    count_large_free(span.bytes());
    // If the system refuses, accesses after the free go unnoticed.
    if (span.is_of_whole_pages()) (void)platform::deny_access(p, span.bytes());
    quarantine({p, span.bytes()});
}

void Pool::quarantine(blocks::Quarantine::Block block) noexcept {
    blocks::Quarantine::Block taken[batch];
    const unsigned count = buckets_.quarantine().exchange(block, taken, batch);
    if (count == 0) return;
    Changes changes;
    release(taken, count, changes);
    end_slow_path(changes);
}

void Pool::empty_quarantine(Changes& changes) noexcept {
    blocks::Quarantine::Block taken[batch];
    while (const unsigned count = buckets_.quarantine().take(taken, batch)) {
        release(taken, count, changes);
    }
}

// Small blocks go to their spans, which hand them out in random order, those of one size at once.
void Pool::release(blocks::Quarantine::Block* blocks, unsigned count, Changes& changes) noexcept {
    for (unsigned i = 0; i != count; ++i) {
        if (blocks[i].begin == nullptr) continue;  // was released with an earlier one
        const pages::PageEntry entry = heap_.space().map().at(blocks[i].begin);
        if (!entry.is_bucket()) {
            release_pages(*entry.span(), changes);
            continue;
        }
        void* same[batch];
        unsigned same_count = 0;
        for (unsigned k = i; k != count; ++k) {
            if (blocks[k].begin == nullptr || blocks[k].bytes != blocks[i].bytes) continue;
            if (!heap_.space().map().at(blocks[k].begin).is_bucket()) continue;
            same[same_count++] = std::exchange(blocks[k].begin, nullptr);
        }
        buckets_.return_direct(entry.bucket(), same, same_count, changes);
    }
}

void Pool::release_pages(Span& span, Changes& changes) noexcept {
    void* const begin = heap_.space().address_of(span.first_page);
    // A block of which a part stays inaccessible can never be used again.
    const bool is_accessible =
        !span.is_of_whole_pages() ||
        (platform::remove_guard(begin, span.bytes()) && platform::commit(begin, span.bytes()));
    if (!is_accessible) return;
    const std::size_t bytes = span.bytes();
    if (span.is_marked) span.take_mark().on_free(bytes);
    let_go(blocks::own_cache(place_), bytes);
    large_.free(span, changes);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
