#include "blocks/bucket_spans.hpp"

namespace tensorpool::blocks {
namespace {

BucketTraits::Cut cut_of(std::size_t stride) noexcept {
    if (platform::page_bytes() != pages::page_bytes) return BucketTraits::Cut::others;
    if (stride >= pages::page_bytes) return BucketTraits::Cut::whole_pages;
    const bool is_in_one_word = pages::page_bytes % stride == 0 && pages::page_bytes / stride <= 64;
    return is_in_one_word ? BucketTraits::Cut::whole_blocks : BucketTraits::Cut::others;
}

}  // namespace

BucketTraits::BucketTraits(unsigned its_number, const BucketSources& shared) noexcept
    : number(its_number),
      sources(shared),
      layout(series_layouts[shared.series][number]),
      block_bytes(base::block_bytes(shared.series, number)),
      kind(shared.is_marked ? pages::PageKind::marked
                            : pages::kind_of_bucket(number, shared.series)),
      cut(cut_of(layout.stride)),
      blocks_in_page(static_cast<unsigned>(pages::page_bytes / layout.stride)) {}

using pages::Changes;
using pages::PageEntry;
using pages::SlowPath;
using pages::Span;

BucketShard& BucketSpans::own_shard() noexcept {
    const auto make = [this](unsigned number) noexcept -> BucketShard* {
        void* const memory =
            traits_.sources.records.allocate(sizeof(BucketShard), alignof(BucketShard));
        return memory == nullptr ? nullptr : new (memory) BucketShard(traits_, number);
    };
    return shards_.own(make, [](BucketShard&) noexcept {});
}

unsigned BucketSpans::take(void** blocks, unsigned max_count, SlowPath& path) noexcept {
    BucketShard& own = own_shard();
    const unsigned count = shards_.has_others() ? take_from_any(own, blocks, max_count, path)
                                                : own.take(blocks, max_count, &path);
    std::reverse(blocks, blocks + count);
    return count;
}

// Before the thread's shard grows, the spans of others serve.
unsigned BucketSpans::take_from_any(BucketShard& own, void** blocks, unsigned max_count,
                                    SlowPath& path) noexcept {
    const bool may_grow = std::exchange(path.may_grow, false);
    unsigned count = own.take(blocks, max_count, &path);
    path.may_grow = may_grow;
    shards_.for_each_other(own, [&](BucketShard& other) {
        if (count == 0) count = other.take(blocks, max_count, nullptr);
    });
    if (count == 0 && may_grow) count = own.take(blocks, max_count, &path);
    return count;
}

std::size_t BucketSpans::bring_home(void* const* blocks, unsigned count,
                                    Changes& changes) noexcept {
    pages::SpanList all_home;
    for (unsigned done = 0; done != count;) {
        done += shard_of(blocks[done]).bring_home(blocks + done, count - done, all_home);
    }
    std::size_t bytes = 0;
    while (!all_home.empty()) {
        Span& span = all_home.front();
        all_home.pop_front();
        bytes += span.bytes();
        pages::BlockStates* const states = span.states.exchange(nullptr);
        BucketShard& shard = *shards_.find(span.shard);
        const bool is_hardened = traits_.is_hardened();
        if (is_hardened && !soften(traits_.sources.heap, span)) continue;
        traits_.sources.heap.free(span, changes,
                                  is_hardened ? pages::Zeroed::yes : pages::Zeroed::no);
        shard.keep_states(states);
    }
    return bytes;
}

// The span of a block that is not home stays, so its record can be read. The shard reports any
// other pointer.
BucketShard& BucketSpans::shard_of(const void* block) noexcept {
    if (!shards_.has_others()) return shards_.first();
    const PageEntry entry = traits_.entry(block);
    if (!traits_.is_ours(entry)) return shards_.first();
    BucketShard* const shard = shards_.find(entry.span()->shard % pages::max_shards);
    return shard != nullptr ? *shard : shards_.first();
}

BucketSpans::Finding BucketSpans::find(const void* p) noexcept {
    const std::lock_guard guard(*this);
    // A span whose blocks are all home may be about to return to the page heap, which may free its
    // record. The heap's lock keeps the record readable.
    const std::lock_guard heap_guard(traits_.sources.heap);
    const PageEntry entry = traits_.entry(p);
    if (!traits_.is_ours(entry)) return {};
    const Span& span = *entry.span();
    const unsigned index = traits_.index_in(span, p);
    if (index >= span.carved) return {};
    char* const block = static_cast<char*>(traits_.block_at(span, index));
    if (p >= block + traits_.block_bytes) return {};
    Finding finding{.in_span = true, .home = is_home(span, index), .block = block};
    if (pages::BlockStates* const states = span.states.load(std::memory_order_acquire)) {
        if (traits_.sources.states == States::none) {
            const auto& mark = states->marks[index];
            finding.in_use = mark.load(std::memory_order_relaxed) != nullptr;
        } else if (traits_.sources.states == States::uses) {
            finding.in_use = states->state(index).load(std::memory_order_relaxed) != 0;
        } else {
            const std::uint16_t wide = states->wide_state(index).load(std::memory_order_relaxed);
            finding.in_use = wide != 0;
            finding.requested = requested_bytes_of(traits_, wide);
        }
    }
    return finding;
}

}  // namespace tensorpool::blocks
