#pragma once

#include "blocks/bucket_shard.hpp"

namespace tensorpool::blocks {

/// The spans that the blocks of one bucket are cut from, divided among shards. Thread-safe.
class BucketSpans {
public:
    explicit BucketSpans(const BucketTraits& traits) noexcept
        : traits_(traits), shards_(traits, 0U) {}

    const BucketTraits& traits() const noexcept { return traits_; }

    /// Takes up to `max_count` blocks and returns their number, which is 0 only if memory is
    /// refused. The last block has the lowest address.
    unsigned take(void** blocks, unsigned max_count, pages::SlowPath& path) noexcept {
        BucketShard& own = own_shard();
        const unsigned count = shards_.has_others() ? take_from_any(own, blocks, max_count, path)
                                                    : own.take(blocks, max_count, &path);
        std::reverse(blocks, blocks + count);
        return count;
    }
    /// Returns blocks by setting their bits. Spans whose blocks are all home go back to the page
    /// heap. Returns the bytes of those spans.
    std::size_t bring_home(void* const* blocks, unsigned count, pages::Changes& changes) noexcept {
        pages::SpanList all_home;
        for (unsigned done = 0; done != count;) {
            done += shard_of(blocks[done]).bring_home(blocks + done, count - done, all_home);
        }
        std::size_t bytes = 0;
        while (!all_home.empty()) {
            pages::Span& span = all_home.front();
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

    /// Releases the memory of whole pages that contain only free blocks of spans that stay. The
    /// pages remain committed: they count as capacity, and the next access finds zeros.
    void drop_free_pages() noexcept {
        shards_.for_each([](BucketShard& shard) { shard.drop_free_pages(); });
    }

    /// The state of a block, for checks and queries.
    struct Finding {
        bool in_span = false;       // the pointer lies in a carved block of this bucket
        bool home = false;          // that block is free and lies in its span
        bool in_use = false;        // the block is in use; for `States::none`, it is marked
        void* block = nullptr;      // the beginning of the block
        std::size_t requested = 0;  // requested bytes of a block in use, with `States::requests`
    };
    /// Classifies any pointer, including pointers that do not belong to this pool.
    Finding find(const void* p) noexcept {
        const std::lock_guard guard(*this);
        // A span whose blocks are all home may be about to return to the page heap, which may free
        // its record. The heap's lock keeps the record readable.
        const std::lock_guard heap_guard(traits_.sources.heap);
        const pages::PageEntry entry = traits_.entry(p);
        if (!traits_.is_ours(entry)) return {};
        const pages::Span& span = *entry.span();
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
                const std::uint16_t wide =
                    states->wide_state(index).load(std::memory_order_relaxed);
                finding.in_use = wide != 0;
                finding.requested = requested_bytes_of(traits_, wide);
            }
        }
        return finding;
    }

    /// The bytes of all spans.
    std::size_t capacity() const noexcept {
        std::size_t sum = 0;
        shards_.for_each([&](const BucketShard& shard) { sum += shard.capacity(); });
        return sum;
    }
    /// Returns whether the calling thread's shard has at most `idle` bytes that are home, beside as
    /// much as is not.
    bool are_at_least_half_out(std::size_t idle) noexcept {
        const BucketShard& own = own_shard();
        return own.capacity() <= 2 * own.out_bytes() + idle;
    }

    /// The first shard, whose lock also guards the making of magazines.
    BucketShard& first_shard() noexcept { return shards_.first(); }
    /// The locks of all shards.
    void lock() noexcept {
        shards_.for_each([](BucketShard& shard) { shard.lock(); });
    }
    void unlock() noexcept {
        // The first shard last: while it is locked, no other shard is made.
        shards_.for_each_other(shards_.first(), [](BucketShard& shard) { shard.unlock(); });
        shards_.first().unlock();
    }

private:
    BucketShard& own_shard() noexcept {
        const auto make = [this](unsigned number) noexcept -> BucketShard* {
            void* const memory =
                traits_.sources.records.allocate(sizeof(BucketShard), alignof(BucketShard));
            return memory == nullptr ? nullptr : new (memory) BucketShard(traits_, number);
        };
        return shards_.own(make, [](BucketShard&) noexcept {});
    }
    // The span of a block that is not home stays, so its record can be read. The shard reports any
    // other pointer.
    BucketShard& shard_of(const void* block) noexcept {
        if (!shards_.has_others()) return shards_.first();
        const pages::PageEntry entry = traits_.entry(block);
        if (!traits_.is_ours(entry)) return shards_.first();
        BucketShard* const shard = shards_.find(entry.span()->shard % pages::max_shards);
        return shard != nullptr ? *shard : shards_.first();
    }
    // Before the thread's shard grows, the spans of others serve.
    unsigned take_from_any(BucketShard& own, void** blocks, unsigned max_count,
                           pages::SlowPath& path) noexcept {
        const bool may_grow = std::exchange(path.may_grow, false);
        unsigned count = own.take(blocks, max_count, &path);
        path.may_grow = may_grow;
        shards_.for_each_other(own, [&](BucketShard& other) {
            if (count == 0) count = other.take(blocks, max_count, nullptr);
        });
        if (count == 0 && may_grow) count = own.take(blocks, max_count, &path);
        return count;
    }

    const BucketTraits& traits_;
    // Their memory is freed with the records.
    pages::PerShard<BucketShard> shards_;
};

}  // namespace tensorpool::blocks
