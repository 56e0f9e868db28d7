// Blocks of pools with Checks::hardened. A freed block waits in the quarantine: a small one filled
// with zeros, one of whole pages inaccessible. Every block has a canary behind what was requested,
// and one of whole pages also a page that may not be accessed.

#include <algorithm>
#include <cstring>

#include "base/alignment.hpp"
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

using pages::Changes;
using pages::SlowPath;
using pages::Span;
using statistics::MisuseKind;
using statistics::report_misuse;

/// The pages of a block of whole pages that may not be accessed: all behind its canary. There are
/// none where the block shares larger pages of the system with a neighbour.
struct Tail {
    Tail(const Span& span, std::size_t requested) noexcept
        : begin(span.is_of_whole_pages() ? base::align_up(requested + Canary::min_bytes, unit())
                                         : span.bytes()),
          bytes(span.bytes() - begin) {}
    static std::size_t unit() noexcept {
        return std::max(pages::page_bytes, platform::page_bytes());
    }

    std::size_t begin;  // offset in the block
    std::size_t bytes;
};

/// Returns the offset of the first byte that is not zero, or `bytes` if all are.
std::size_t find_nonzero(const char* block, std::size_t bytes) noexcept {
    std::size_t at = 0;
    for (; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
        std::uint64_t word = 0;
        std::memcpy(&word, block + at, sizeof word);
        if (word != 0) break;
    }
    return static_cast<std::size_t>(
        std::find_if(block + at, block + bytes, [](char c) { return c != 0; }) - block);
}

}  // namespace

void Pool::harden() noexcept {
    canary_ = Canary(platform::random_bits());
    buckets_.quarantine().limit(options_.quarantine_bytes);
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
    if (bucket == bucket_count) return allocate_hardened_pages(bytes, alignment, path);
    char* const block =
        static_cast<char*>(allocate_block(buckets_, bucket, bytes, alignment, path));
    if (block == nullptr) return nullptr;
    check_still_zero(block, bucket_bytes(bucket));
    canary_.fill(block, bytes, bucket_bytes(bucket));
    buckets_[bucket].begin_use(block, bytes);
    return block;
}

void* Pool::allocate_hardened_pages(std::size_t bytes, std::size_t alignment,
                                    SlowPath& path) noexcept {
    const std::size_t more = Canary::min_bytes + Tail::unit();
    char* const block = static_cast<char*>(allocate_large(bytes + more, alignment, path));
    if (block == nullptr) return nullptr;
    Span& span = *large_.find_in_use(block);
    span.requested_bytes.store(bytes, std::memory_order_release);
    count_large_request_as(bytes, bytes + more);
    const Tail tail(span, bytes);
    canary_.fill(block, bytes, tail.begin);
    // If the system refuses, the block has no guard; its canary stays.
    if (tail.bytes != 0) (void)platform::install_guard(block + tail.begin, tail.bytes);
    return block;
}

void Pool::check_still_zero(char* block, std::size_t bytes) noexcept {
    const std::size_t at = find_nonzero(block, bytes);
    if (at == bytes) [[likely]]
        return;
    report_misuse({.kind = MisuseKind::write_after_free,
                   .pointer = block,
                   .size = bytes,
                   .owner = options_.name},
                  "pool '%s': allocate: the free block %p was written at offset %zu",
                  options_.name.c_str(), static_cast<void*>(block), at);
    std::memset(block, 0, bytes);
}

// A block with a damaged canary is a valid block all the same, so the program may go on.
void Pool::check_canary(const char* block, std::size_t requested, std::size_t usable) noexcept {
    const std::size_t at = canary_.find_damage(block, requested, usable);
    if (at == usable) [[likely]]
        return;
    report_misuse({.kind = MisuseKind::overrun,
                   .pointer = block,
                   .size = usable,
                   .requested = requested,
                   .owner = options_.name},
                  "pool '%s': deallocate: block %p of %zu B was written at offset %zu, beyond its "
                  "end",
                  options_.name.c_str(), static_cast<const void*>(block), requested, at);
}

// The block stays in use until the checks are done.
void Pool::deallocate_hardened(void* p, StatedSize stated) noexcept {
    record_end_if_recording(p);
    const pages::PageEntry entry = heap_.space().map().at(p);
    const Finding found = find(p);
    if (found.what != Finding::What::block) return misused(p, found);
    if (entry.kind() == pages::PageKind::served && free_served(p)) return;
    if (stated.bucket != StatedSize::nothing && stated.bytes != found.requested) {
        report_misuse(misuse_of(MisuseKind::wrong_size, p, found),
                      "pool '%s': deallocate: block %p was allocated with %zu B and freed with %zu "
                      "B",
                      options_.name.c_str(), p, found.requested, stated.bytes);
    }
    entry.is_bucket() ? free_hardened(p, entry, found) : free_hardened_pages(p, entry, found);
    evict_excess();
}

void Pool::free_hardened(void* p, pages::PageEntry entry, const Finding& found) noexcept {
    char* const block = static_cast<char*>(p);
    const std::size_t bytes = bucket_bytes(entry.bucket());
    check_canary(block, found.requested, bytes);
    if (!buckets_[entry.bucket()].end_use(p, entry, SIZE_MAX)) return refuse(p);
    std::memset(block, 0, bytes);
    count_hardened_free(entry.bucket());
    wait_in_quarantine({p, bytes});
}

void Pool::free_hardened_pages(void* p, pages::PageEntry entry, const Finding& found) noexcept {
    (void)free_served(p);  // a server may have to note the free
    Span& span = *entry.span();
    char* const block = static_cast<char*>(p);
    const Tail tail(span, found.requested);
    check_canary(block, found.requested, tail.begin);
    const pages::PageEntry now = heap_.space().map().at(p);
    if (!large_.end_use(p, now, 0, SIZE_MAX)) return refuse(p);
    count_large_free(span.bytes());
    // If the system refuses, accesses after the free go unnoticed.
    if (span.is_of_whole_pages()) (void)platform::deny_access(p, span.bytes());
    wait_in_quarantine({p, span.bytes()});
}

void Pool::wait_in_quarantine(blocks::Quarantine::Block block) noexcept {
    record_->totals.quarantined_bytes.fetch_add(block.bytes, std::memory_order_relaxed);
    if (!buckets_.quarantine().add(block)) {
        Changes changes;
        release(block, changes);
        end_slow_path(changes);
    }
}

void Pool::evict_excess() noexcept {
    blocks::Quarantine::Block blocks[64];
    const unsigned count = buckets_.quarantine().take_excess(blocks, std::size(blocks));
    if (count == 0) return;
    Changes changes;
    for (unsigned i = 0; i != count; ++i) release(blocks[i], changes);
    end_slow_path(changes);
}

void Pool::empty_quarantine(Changes& changes) noexcept {
    blocks::Quarantine::Block blocks[64];
    while (const unsigned count = buckets_.quarantine().take(blocks, std::size(blocks))) {
        for (unsigned i = 0; i != count; ++i) release(blocks[i], changes);
    }
}

// Small blocks go to their spans, which hand them out in random order.
void Pool::release(blocks::Quarantine::Block block, Changes& changes) noexcept {
    record_->totals.quarantined_bytes.fetch_sub(block.bytes, std::memory_order_relaxed);
    const pages::PageEntry entry = heap_.space().map().at(block.begin);
    if (entry.is_bucket()) return buckets_.return_direct(entry.bucket(), block.begin, changes);
    Span& span = *entry.span();
    // A block of which a part stays inaccessible can never be used again.
    const bool is_accessible =
        !span.is_of_whole_pages() || (platform::remove_guard(block.begin, span.bytes()) &&
                                      platform::commit(block.begin, span.bytes()));
    if (!is_accessible) return;
    let_go(blocks::own_cache(place_), span.bytes());
    large_.free(span, changes);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
