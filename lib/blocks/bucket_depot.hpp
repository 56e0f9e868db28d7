#pragma once

#include "blocks/bucket_spans.hpp"
#include "blocks/depot.hpp"

namespace tensorpool::blocks {

/// The depot of one bucket, which is made when it is first needed, and the limits of what it keeps.
/// Thread-safe.
class BucketDepot {
public:
    /// Blocks that the depot may not keep go home to `spans`.
    explicit BucketDepot(BucketSpans& spans) noexcept : spans_(spans) {}
    ~BucketDepot();

    /// Takes a magazine with blocks. Returns nullptr if there is none.
    Magazine* take_full() noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        Magazine* const magazine = depot == nullptr ? nullptr : depot->take_full();
        if (magazine != nullptr) note_kept(-static_cast<std::ptrdiff_t>(magazine->count));
        return magazine;
    }
    enum class MayMake : std::uint8_t { within_limit, always };
    /// Takes a magazine without blocks, or makes one. With `within_limit`, one is made only while
    /// the bucket's pointer arrays stay small relative to its capacity; with `always`, for a
    /// thread's own two magazines, without that limit. Returns nullptr if there is none.
    Magazine* take_empty(MayMake may_make) noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        Magazine* const magazine = depot == nullptr ? nullptr : depot->take_empty();
        return magazine != nullptr ? magazine : make_magazine(may_make);
    }
    /// Puts a magazine in. It cannot fail: the depot exists, because room in it was reserved when
    /// the magazine was made.
    void give(Magazine& magazine) noexcept;
    /// Returns whether it may hold another magazine with this many blocks. It may if free memory
    /// stays within the retention limit and the shard's spans are at least half in use. Otherwise
    /// blocks go home, because only there are they taken from the fullest span first.
    bool may_keep(unsigned blocks) noexcept;
    /// The bytes of all blocks.
    std::size_t bytes() const noexcept {
        const Depot* const depot = depot_.load(std::memory_order_acquire);
        return depot == nullptr ? 0 : depot->blocks() * spans_.traits().block_bytes;
    }

    /// Returns the blocks that stayed since the previous call to their spans. Returns the bytes of
    /// spans that went back to the page heap.
    std::size_t drain_unneeded(pages::Changes& changes) noexcept;
    /// Does what `drain_unneeded` does for the calling thread's shard, if at least an eighth of its
    /// blocks was taken since the last such call.
    void drain_after_exchange(pages::Changes& changes) noexcept;
    /// Returns all blocks to their spans. With `Magazines::keep` the magazines stay; with
    /// `Magazines::destroy` they are freed.
    enum class Magazines : std::uint8_t { keep, destroy };
    void drain(Magazines magazines, pages::Changes& changes) noexcept;

private:
    std::size_t drain_unneeded(DepotShard& shard, pages::Changes& changes) noexcept;
    std::size_t bring_home(Magazine& magazine, pages::Changes& changes) noexcept {
        const std::size_t bytes = spans_.bring_home(magazine.blocks, magazine.count, changes);
        magazine.count = 0;
        return bytes;
    }
    void note_kept(std::ptrdiff_t blocks) noexcept {
        const auto block_bytes = static_cast<std::ptrdiff_t>(spans_.traits().block_bytes);
        sources().heap.kept().note_elsewhere(blocks * block_bytes);
    }
    Magazine* make_magazine(MayMake may_make) noexcept;
    Depot* make_depot() noexcept;
    const BucketSources& sources() const noexcept { return spans_.traits().sources; }

    BucketSpans& spans_;
    std::size_t magazines_ = 0;  // made and not destroyed; guarded by the lock of the first shard
    // Loads with acquire pair with the release store in `make_depot`.
    std::atomic<Depot*> depot_ = nullptr;
};

/// One size class of one pool. Every block that was carved from a span is in exactly one state: in
/// use, in a thread's magazine, in the depot, or home. A block is *home* when it is free and its
/// bit in its span is set. Thread-safe.
struct Bucket {
    Bucket(unsigned number, const BucketSources& sources) noexcept
        : traits(number, sources), spans(traits), depot(spans) {}

    const BucketTraits traits;
    BucketSpans spans;
    /// The magazines through which threads exchange free blocks.
    BucketDepot depot;
};

}  // namespace tensorpool::blocks
