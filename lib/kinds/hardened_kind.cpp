#include "kinds/kinds.hpp"

#include "kinds/reports.hpp"
#include "kinds/watcher.hpp"

namespace tensorpool::kinds {
namespace {

using base::Canary;
using blocks::Quarantine;
using detail::AllocatedBy;
using events::MisuseKind;
using events::report_misuse;
using pages::BlockOrigin;

/// The pages of a block of whole pages that may not be accessed: all behind its canary, or all if 0
/// bytes were requested. There are none where the block shares larger pages of the system with a
/// neighbour.
struct Tail {
    Tail(const Span& span, std::size_t requested) noexcept
        : begin(!span.is_of_whole_pages() ? span.bytes()
                : requested == 0          ? 0
                                          : base::align_up(requested + Canary::min_bytes, unit())),
          bytes(span.bytes() - begin) {}
    static std::size_t unit() noexcept { return pages::bytes_of(pages::guard_pages()); }

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

events::Misuse misuse_at(const PoolParts& pool, MisuseKind kind, const void* block,
                         std::size_t usable,
                         std::size_t requested = events::Misuse::unknown) noexcept {
    return {.kind = kind,
            .pointer = block,
            .size = usable,
            .requested = requested,
            .owner = pool.options.name};
}

[[noreturn]] void stop_at_wrong_block(const PoolParts& pool, const char* block,
                                      std::size_t bytes) noexcept {
    events::stop_at_misuse(misuse_at(pool, MisuseKind::corrupt_record, block, bytes),
                           "pool '%s': allocate: %p, from a record of free blocks, is not the "
                           "beginning of a free block of %zu B",
                           pool.name(), static_cast<const void*>(block), bytes);
}

[[noreturn]] void stop_at_wrong_record(const PoolParts& pool, const char* block,
                                       std::size_t requested, std::size_t usable) noexcept {
    events::stop_at_misuse(misuse_at(pool, MisuseKind::corrupt_record, block, usable, requested),
                           "pool '%s': deallocate: the record of block %p says that %zu B of "
                           "%zu were requested",
                           pool.name(), static_cast<const void*>(block), requested, usable);
}

void check_still_zero(const PoolParts& pool, char* block, std::size_t bytes,
                      std::size_t usable) noexcept {
    const std::size_t at = base::find_nonzero(block, bytes);
    if (at == bytes) [[likely]]
        return;
    report_misuse(misuse_at(pool, MisuseKind::write_after_free, block, usable),
                  "pool '%s': allocate: the free block %p was written at offset %zu", pool.name(),
                  static_cast<void*>(block), at);
    std::memset(block, 0, bytes);
}

// A block with a damaged canary is a valid block all the same, so the program may go on.
bool check_canary(const PoolParts& pool, const char* block, std::size_t requested,
                  std::size_t usable) noexcept {
    if (requested > usable - Canary::min_bytes) [[unlikely]]
        stop_at_wrong_record(pool, block, requested, usable);
    const std::size_t at = pool.canary.find_damage(block, requested, usable);
    if (at == usable) [[likely]]
        return true;
    report_misuse(misuse_at(pool, MisuseKind::overrun, block, usable, requested),
                  "pool '%s': deallocate: block %p of %zu B was written at offset %zu, beyond its "
                  "end",
                  pool.name(), static_cast<const void*>(block), requested, at);
    return false;
}

// A block that is freed in a wrong way is a valid block, so the program may go on.
void check_stated(const PoolParts& pool, const void* p, const FreedAs& freed,
                  const blocks::EndedUse& use, std::size_t usable) noexcept {
    events::Misuse misuse = misuse_at(pool, MisuseKind::wrong_size, p, usable, use.requested);
    const std::size_t alignment = std::max(freed.alignment, BlockOrigin::default_alignment);
    if (freed.bytes != FreedAs::unknown && freed.bytes != use.requested) {
        report_misuse(misuse,
                      "pool '%s': deallocate: block %p was allocated with %zu B and freed with "
                      "%zu B",
                      pool.name(), p, use.requested, freed.bytes);
    } else if (freed.alignment != FreedAs::unknown && alignment != use.origin.alignment()) {
        report_misuse(misuse,
                      "pool '%s': deallocate: block %p was allocated with an alignment of %zu B "
                      "and freed with one of %zu B",
                      pool.name(), p, use.origin.alignment(), alignment);
    } else if (freed.by != use.origin.by() && freed.by != AllocatedBy::pool &&
               use.origin.by() != AllocatedBy::pool) {
        misuse.kind = MisuseKind::mismatched_free;
        report_misuse(misuse, "pool '%s': deallocate: block %p was allocated by %s and freed by %s",
                      pool.name(), p, allocation_of(use.origin.by()), free_of(freed.by));
    }
}

// The block is no longer the cache's, although it goes home later.
void count_free(PoolParts& pool, unsigned bucket) noexcept {
    const auto count_in = [bucket](detail::ThreadCounters& counters) {
        detail::add_release(counters.buckets[bucket].deallocations, 1);
        detail::add_release(counters.buckets[bucket].returned, 1);
    };
    if (blocks::Cache* const cache = attach(pool, pool.buckets)) {
        return count_in(*cache->counters);
    }
    const std::lock_guard guard(pool.counters.shared_mutex());
    count_in(pool.counters.shared());
    statistics::count_shared_deallocation(pool.buckets[bucket].traits.row(), bucket_bytes(bucket));
}

void release_pages(PoolParts& pool, Span& span, Changes& changes) noexcept {
    void* const begin = pool.large.address_of(span);
    // A block of which a part stays inaccessible can never be used again.
    const bool is_accessible =
        !span.is_of_whole_pages() ||
        (platform::remove_guard(begin, span.bytes()) && platform::commit(begin, span.bytes()));
    if (!is_accessible) return;
    if (span.is_marked) span.take_mark().on_free(span.bytes());
    pool.totals().let_go(span.bytes());
    pool.large.free(span, changes);
}

// Small blocks go to their spans, which hand them out in random order, those of one size at once.
void release(PoolParts& pool, Quarantine::Block* blocks, unsigned count,
             Changes& changes) noexcept {
    for (unsigned i = 0; i != count; ++i) {
        if (blocks[i].begin == nullptr) continue;  // was released with an earlier one
        const PageEntry entry = pool.entry(blocks[i].begin);
        if (!entry.is_bucket()) {
            release_pages(pool, *entry.span(), changes);
            continue;
        }
        void* same[batch];
        unsigned same_count = 0;
        for (unsigned k = i; k != count; ++k) {
            if (blocks[k].begin == nullptr || blocks[k].bytes != blocks[i].bytes) continue;
            if (!pool.entry(blocks[k].begin).is_bucket()) continue;
            same[same_count++] = std::exchange(blocks[k].begin, nullptr);
        }
        pool.buckets[entry.bucket()].spans.bring_home(same, same_count, changes);
    }
}

// Returns whether blocks left the quarantine.
bool quarantine(PoolParts& pool, Quarantine::Block block, Changes& changes) noexcept {
    Quarantine::Block taken[batch];
    const unsigned count = pool.buckets.shared().quarantine.exchange(block, taken, batch);
    release(pool, taken, count, changes);
    return count != 0;
}

void* allocate_pages(PoolParts& pool, const Request& request, SlowPath& path) noexcept {
    const std::size_t bytes = request.bytes;
    const std::size_t more = Tail::unit() + (bytes == 0 ? 0 : Canary::min_bytes);
    const Request with_tail{bytes + more, request.alignment};
    const AllocatePages allocate =
        pool.is_in_scope() ? allocate_charged_pages : allocate_whole_pages;
    char* const block = static_cast<char*>(watch_pages(pool, with_tail, path, allocate));
    if (block == nullptr) return nullptr;
    Span& span = *pool.entry(block).span();
    // Relaxed: the requested bytes, which are stored next, publish it.
    span.origin.store(BlockOrigin(request.alignment), std::memory_order_relaxed);
    span.requested_bytes.store(bytes == 0 ? Span::nothing : bytes, std::memory_order_release);
    count_large(pool, blocks::own_cache(pool.place),
                [&](detail::LargeCounters& counted, blocks::Cache*) {
                    detail::add(counted.requested_bytes, 0 - more);
                });
    const Tail tail(span, bytes);
    if (tail.begin != 0) pool.canary.fill(block, bytes, tail.begin);
    // If the system refuses, the block has no guard; its canary stays.
    if (tail.bytes != 0) (void)platform::install_guard(block + tail.begin, tail.bytes);
    return block;
}

}  // namespace

void harden(PoolParts& pool) noexcept {
    pool.canary = Canary(platform::random_bits());
    pool.buckets.shared().quarantine.limit(pool.options.quarantine_bytes,
                                           pool.totals().quarantined_bytes);
}

void* allocate_hardened(PoolParts& pool, const Request& request, SlowPath& path) noexcept {
    if (!is_possible_size(request, path)) return nullptr;
    const unsigned bucket = bucket_for(request.bytes + Canary::min_bytes, request.alignment);
    // The quarantine does not keep small blocks of budgets apart, so these get pages of their own.
    if (bucket == bucket_count || pool.is_in_scope()) return allocate_pages(pool, request, path);
    void* const block = allocate_block(pool, pool.buckets, bucket, request, path);
    if (block != nullptr) {
        begin_hardened_use(pool, block, request.bytes, bucket, BlockOrigin(request.alignment));
    }
    return block;
}

void* allocate_nothing(PoolParts& pool, std::size_t alignment, SlowPath& path) noexcept {
    return allocate_pages(pool, {0, std::max(alignment, smallest_block_bytes)}, path);
}

void begin_hardened_use(PoolParts& pool, void* p, std::size_t bytes, unsigned bucket,
                        BlockOrigin origin) noexcept {
    char* const block = static_cast<char*>(p);
    const std::size_t usable = bucket_bytes(bucket);
    if (!begin_first_use(pool.buckets[bucket].traits, block, bytes, origin)) [[unlikely]]
        stop_at_wrong_block(pool, block, usable);
    // Bytes behind the canary are checked when a larger request gets them.
    check_still_zero(pool, block, Canary::end(bytes, usable), usable);
    pool.canary.fill(block, bytes, usable);
}

void record_allocated_by(PoolParts& pool, void* block, AllocatedBy by) noexcept {
    if (!pool.is_hardened()) return;
    const PageEntry entry = pool.entry(block);
    if (!pool.owns(entry) || !entry.has_span()) return;
    std::atomic<BlockOrigin>& origin =
        entry.is_bucket() ? origin_of(pool.buckets[entry.bucket()].traits, block, entry)
                          : entry.span()->origin;
    // Relaxed: the caller holds the block.
    const BlockOrigin old = origin.load(std::memory_order_relaxed);
    if (by == AllocatedBy::new_array && old.by() != AllocatedBy::new_object) return;
    origin.store(BlockOrigin(old.alignment(), by), std::memory_order_relaxed);
}

// Only one thread ends the use, so the block is then the caller's alone.
bool free_hardened_small(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                         Changes& changes) noexcept {
    char* const block = static_cast<char*>(p);
    const std::size_t bytes = bucket_bytes(entry.bucket());
    blocks::EndedUse use;
    if (!end_use(pool.buckets[entry.bucket()].traits, p, entry, SIZE_MAX, &use)) {
        report_free(pool, p, {});
        return false;
    }
    check_stated(pool, p, stated.as, use, bytes);
    // Behind an undamaged canary the block holds zeros already. If it does not, a later request for
    // those bytes finds it.
    const bool is_whole = check_canary(pool, block, use.requested, bytes);
    std::memset(block, 0, is_whole ? Canary::end(use.requested, bytes) : bytes);
    count_free(pool, entry.bucket());
    return quarantine(pool, {p, bytes}, changes);
}

// The block stays in use until the checks are done.
bool free_hardened_pages(PoolParts& pool, void* p, PageEntry entry, const Stated& stated,
                         Changes& changes) noexcept {
    const Found found = find_pages(pool, p, entry);
    if (!found.is_block()) {
        report_pointer(pool, p, found);
        return false;
    }
    Span& span = *entry.span();
    const Tail tail(span, found.requested);
    check_stated(pool, p, stated.as, {found.requested, span.origin.load(std::memory_order_relaxed)},
                 span.bytes());
    if (tail.begin != 0)
        (void)check_canary(pool, static_cast<char*>(p), found.requested, tail.begin);
    if (!pool.large.end_use(p, pool.entry(p), 0, SIZE_MAX)) {
        report_free(pool, p, {});
        return false;
    }
    count_large_free(pool, span.bytes(), Held::yes);
    // If the system refuses, accesses after the free go unnoticed.
    if (span.is_of_whole_pages()) (void)platform::make_inaccessible(p, span.bytes());
    return quarantine(pool, {p, span.bytes()}, changes);
}

void empty_quarantine(PoolParts& pool, Changes& changes) noexcept {
    Quarantine::Block taken[batch];
    while (const unsigned count = pool.buckets.shared().quarantine.take(taken, batch)) {
        release(pool, taken, count, changes);
    }
}

}  // namespace tensorpool::kinds
