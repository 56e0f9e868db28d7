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
    unsigned take(void** blocks, unsigned max_count, pages::SlowPath& path) noexcept;
    /// Returns blocks by setting their bits. Spans whose blocks are all home go back to the page
    /// heap. Returns the bytes of those spans.
    std::size_t bring_home(void* const* blocks, unsigned count, pages::Changes& changes) noexcept;

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
    Finding find(const void* p) noexcept;

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
    BucketShard& own_shard() noexcept;
    BucketShard& shard_of(const void* block) noexcept;
    unsigned take_from_any(BucketShard& own, void** blocks, unsigned max_count,
                           pages::SlowPath& path) noexcept;

    const BucketTraits& traits_;
    // Their memory is freed with the records.
    pages::PerShard<BucketShard> shards_;
};

}  // namespace tensorpool::blocks
