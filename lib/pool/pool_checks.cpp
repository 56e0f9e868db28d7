#include <algorithm>
#include <mutex>

#include "base/checks.hpp"
#include "base/text.hpp"
#include "blocks/bucket_states.hpp"
#include "blocks/thread_registry.hpp"
#include "pages/marked/guarded_area.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/pool.hpp"
#include "statistics/misuse/misuse.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

using pages::PageEntry;
using pages::PageKind;
using pages::Span;
using statistics::MisuseKind;
using statistics::report_misuse;

}  // namespace

Pool::Finding Pool::find(const void* p) noexcept {
    const PageEntry entry = heap_.space().map().at(p);
    if (entry.kind() == PageKind::served) return find_served(p);
    if (entry.guarded() != nullptr) return find_guarded(p);
    if (entry.is_marked()) return find_marked(p);
    if (!entry.is_bucket() || entry.pool_number() != heap_.pool_number()) return find_pages(p);
    return find_in(series(entry.series()), entry.bucket(), p);
}

Pool::Finding Pool::find_in(blocks::BucketSet& set, unsigned number, const void* p) noexcept {
    blocks::Bucket& bucket = set[number];
    const blocks::Bucket::Finding found = bucket.find(p);
    if (!found.in_span) return {};
    Finding finding{.what = found.block == p ? Finding::What::block : Finding::What::interior,
                    .block = found.block,
                    // A sized free never refers to a block of a finer size.
                    .bucket = set.series() == 0 ? number : bucket_count,
                    .usable = bucket.block_bytes(),
                    .requested = found.requested};
    if (checked()) {
        if (!found.in_use) finding.what = Finding::What::freed;
        return finding;
    }
    blocks::Cache* const cache = blocks::thread_registry().attached(set);
    const bool is_free = found.home || (set.is_marked() && !found.in_use);
    if (is_free || (cache != nullptr && cache->parks(number, found.block))) {
        finding.what = Finding::What::freed;
    }
    return finding;
}

Pool::Finding Pool::find_pages(const void* p) noexcept {
    const std::lock_guard guard(heap_);
    // Records of other pools may be freed at any time.
    if (!heap_.space().is_lent_to(heap_.pool_number(), p)) return {};
    const pages::PageMap& map = heap_.space().map();
    const PageEntry entry = map.find(p, heap_.pool_number());
    if (entry.empty() || entry.is_bucket() || !entry.has_span()) return {};
    const Span& span = *entry.span();
    const std::uint64_t recorded = span.requested_bytes.load(std::memory_order_relaxed);
    const bool is_nothing = recorded == Span::nothing;
    Finding finding{.block = map.address_of(span.first_page),
                    .usable = is_nothing ? 0 : span.bytes(),
                    .requested = is_nothing ? 0 : recorded};
    // Only the first page's entry is kept current; those of granules and of the last page are set
    // once.
    const bool in_quarantine = is_hardened() && recorded == 0;
    if (map.at(span.first_page).is_large_in_use() && !in_quarantine) {
        finding.what = finding.block == p ? Finding::What::block : Finding::What::interior;
    } else {
        finding.what = Finding::What::freed;
    }
    return finding;
}

bool Pool::owns(const void* p) noexcept {
    const Finding::What what = find(p).what;
    return what == Finding::What::block || what == Finding::What::interior;
}

std::size_t Pool::usable_size(const void* p) noexcept {
    const Finding finding = find(p);
    if (finding.what != Finding::What::block) return 0;
    // From now on the caller may use all of the block. `mark_open` would first read the records of
    // AddressSanitizer, and that fails if another thread frees the block at the same time.
    if (is_marked() && platform::memory_tool() == platform::MemoryTool::address_sanitizer) {
        platform::mark_allocated({p, finding.usable, finding.usable});
    }
    return is_hardened() && finding.requested != 0 ? finding.requested : finding.usable;
}

void* Pool::take_parked_block(std::size_t bytes) noexcept {
    const unsigned bucket = bucket_of(bytes + (is_hardened() ? base::Canary::min_bytes : 0));
    if (bytes == 0 || bucket >= bucket_count || bytes > options_.max_allocation) return nullptr;
    if (is_in_scope()) return nullptr;
    statistics::look_for_recorder();
    blocks::Cache* const cache = blocks::own_cache(place_);
    if (cache == nullptr || statistics::is_recording()) return nullptr;
    void* const block = cache->pop(bucket, bytes);
    if (block == nullptr) return nullptr;
    if (is_hardened()) {
        begin_hardened_use(block, bytes, bucket, {});
    } else {
        buckets_[bucket].begin_use(block, bytes);
    }
    return block;
}

void Pool::deallocate_checked(void* p, StatedSize stated) noexcept {
    statistics::look_for_recorder();
    if (statistics::is_recording()) [[unlikely]]
        record_end(p);
    const PageEntry entry = heap_.space().map().at(p);
    const unsigned bucket = entry.bucket();
    if (entry.is_marked()) return free_marked(p, entry, stated);
    if (entry.pool_number() != heap_.pool_number() || bucket >= bucket_count) {
        return free_checked_pages(p, stated);
    }
    const bool ends =
        stated.agrees(bucket) && buckets_[bucket].end_use(p, entry, max_requested(stated));
    if (!ends) [[unlikely]]
        return refuse(p, stated);
    blocks::Cache* const cache = blocks::own_cache(place_);
    if (cache == nullptr || !cache->push(bucket, p)) free_block(buckets_, bucket, p);
}

void Pool::free_block(blocks::BucketSet& set, unsigned bucket, void* p) noexcept {
    const StatedSize stated{set.block_bytes(bucket), set.series() == 0 ? bucket : bucket_count};
    if (is_marked() && !check_and_mark_freed(p, stated)) [[unlikely]]
        return;
    pages::Changes changes;
    free_block(set, bucket, p, changes);
    end_slow_path(changes);
}

void Pool::free_checked_pages(void* p, StatedSize stated) noexcept {
    if (large_.find_in_use(p) == nullptr && free_served(p)) return;
    const PageEntry entry = heap_.space().map().at(p);
    const bool ours = entry.pool_number() == heap_.pool_number();
    if (!ours || entry.kind() != PageKind::large_in_use || !stated.agrees(bucket_count) ||
        !large_.end_use(p, entry, stated.bytes, max_requested(stated))) {
        return refuse(p, stated);
    }
    free_large(*entry.span());
}

// The largest requested size of a block for which a free with this stated size is valid.
std::size_t Pool::max_requested(StatedSize stated) const noexcept {
    const bool knows = base::checks_sizes(options_.checks) && stated.bucket != StatedSize::nothing;
    return knows ? stated.bytes : SIZE_MAX;
}

void Pool::refuse(void* p) noexcept {
    misused(p, find(p));
}

void Pool::refuse(void* p, StatedSize stated) noexcept {
    Finding finding = find(p);
    if (finding.what == Finding::What::block && is_refused(p, finding, stated)) return;
    // The block is in use again: another thread freed it first, and it was allocated since.
    if (finding.what == Finding::What::block) finding.what = Finding::What::freed;
    misused(p, finding);
}

// Reports a size that does not fit the block. Returns false if it fits.
bool Pool::is_refused(const void* p, const Finding& finding, StatedSize stated) noexcept {
    const auto [bytes, bucket] = stated;
    if (bucket == StatedSize::nothing) return false;
    using base::BytesText;
    const char* const pool = options_.name.c_str();
    if (bucket != finding.bucket || bytes > finding.usable) {
        report_misuse(misuse_of(MisuseKind::wrong_size, p, finding),
                      "pool '%s': deallocate: block %p belongs to %s %s, not to %s of %zu B", pool,
                      p, finding.bucket < bucket_count ? "bucket" : "whole pages of",
                      BytesText(finding.usable).c_str(),
                      bucket < bucket_count ? "the bucket" : "whole pages", bytes);
        return true;
    }
    if (base::checks_sizes(options_.checks) && bytes < finding.requested) {
        report_misuse(misuse_of(MisuseKind::wrong_size, p, finding),
                      "pool '%s': deallocate: block %p was allocated with %zu B and freed with "
                      "%zu B",
                      pool, p, finding.requested, bytes);
        return true;
    }
    return false;
}

// Returns the bytes that a reallocation may copy. More than the block has would be a neighbour's.
std::size_t Pool::check_old_bytes(const void* p, const Finding& finding,
                                  std::size_t stated_bytes) const noexcept {
    const bool knows = is_hardened() && finding.requested != 0;
    const std::size_t bytes = knows ? finding.requested : finding.usable;
    if (stated_bytes <= bytes) return stated_bytes;
    report_misuse(misuse_of(MisuseKind::wrong_size, p, finding),
                  "pool '%s': reallocate: block %p has %zu B, not %zu B", options_.name.c_str(), p,
                  bytes, stated_bytes);
    return bytes;
}

void Pool::check_no_leaks() const noexcept {
    if (!base::checks_sizes(options_.checks)) return;
    const std::uint64_t blocks = counters_.allocations() - counters_.deallocations();
    if (blocks == 0) return;
    report_misuse(
        {.kind = MisuseKind::leak, .size = counters_.in_use_bytes(), .owner = options_.name},
        "pool '%s': destroyed with %llu blocks of %s in use; expected none", options_.name.c_str(),
        static_cast<unsigned long long>(blocks), base::BytesText(counters_.in_use_bytes()).c_str());
}

void Pool::remember(void* p, const Finding& finding, std::size_t requested_bytes) noexcept {
    if (finding.bucket < bucket_count) {
        const PageEntry entry = heap_.space().map().at(p);
        blocks::BucketSet& set = entry.is_marked() ? *buckets_.marked : buckets_;
        set[finding.bucket].begin_use(p, requested_bytes);
        return;
    }
    Span* span = large_.find_in_use(p);
    if (span == nullptr) span = large_.find_noted(p);
    // A block of a plan has no record of the requested bytes.
    if (span != nullptr) span->requested_bytes.store(requested_bytes, std::memory_order_release);
}

statistics::Misuse Pool::misuse_of(MisuseKind kind, const void* p,
                                   const Finding& finding) const noexcept {
    statistics::Misuse misuse{.kind = kind, .pointer = p, .owner = options_.name};
    if (finding.what == Finding::What::foreign) return misuse;
    misuse.size = finding.usable;
    if (const pages::GuardedBlock* const block = pages::GuardedArea::find(p)) {
        misuse.allocated = {block->allocated.thread, block->allocated.view()};
        misuse.freed = {block->freed.thread, block->freed.view()};
    }
    if (finding.requested != 0) misuse.requested = finding.requested;
    return misuse;
}

void Pool::misused(const void* p, const Finding& finding, const char* call) noexcept {
    const char* const pool = options_.name.c_str();
    const char* const expected = "expected a block of this pool in use";
    if (finding.what == Finding::What::freed) {
        return report_misuse(misuse_of(MisuseKind::double_free, p, finding),
                             "pool '%s': %s: block %p was freed twice or was never allocated; %s",
                             pool, call, p, expected);
    }
    if (finding.what == Finding::What::block) {
        return report_misuse(misuse_of(MisuseKind::wrong_size, p, finding),
                             "pool '%s': %s: block %p belongs to bucket %s, not to whole pages",
                             pool, call, p, base::BytesText(finding.usable).c_str());
    }
    if (finding.what != Finding::What::foreign) {
        const auto inside = static_cast<std::size_t>(static_cast<const char*>(p) -
                                                     static_cast<const char*>(finding.block));
        return report_misuse(misuse_of(MisuseKind::interior_free, p, finding),
                             "pool '%s': %s: %p lies %zu B inside the block %p of %s; expected the "
                             "beginning of the block",
                             pool, call, p, inside, finding.block,
                             base::BytesText(finding.usable).c_str());
    }
    const PageEntry entry = heap_.space().map().at(p);
    char other[48];
    if (!entry.empty() && entry.pool_number() != heap_.pool_number() &&
        blocks::thread_registry().name_of(entry.pool_number(), other, sizeof other)) {
        return report_misuse(misuse_of(MisuseKind::wrong_pool, p, finding),
                             "pool '%s': %s: %p lies in pool '%s'; %s", pool, call, p, other,
                             expected);
    }
    return report_misuse(misuse_of(MisuseKind::foreign_free, p, finding),
                         "pool '%s': %s: %p was never allocated by this pool; %s", pool, call, p,
                         expected);
}

}  // namespace abi_2
}  // namespace tensorpool::detail
