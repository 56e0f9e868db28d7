#pragma once

#include <atomic>
#include <cstdint>

#include "blocks/bucket_shard.hpp"
#include "blocks/depot.hpp"
#include "pages/heap/shards.hpp"

namespace tensorpool::blocks {

/// One size class of one pool: the spans that its blocks are cut from, divided among shards, and
/// the depot of magazines through which threads exchange free blocks. Every block that was carved
/// from a span is in exactly one state: in use, in a thread's magazine, in the depot, or home. A
/// block is *home* when it is free and its bit in its span is set. Thread-safe.
class Bucket {
public:
    Bucket(unsigned number, const BucketSources& sources) noexcept;
    Bucket(const Bucket&) = delete;
    Bucket& operator=(const Bucket&) = delete;
    ~Bucket();

    // Blocks, from spans and to spans (bucket.cpp) -------------------------------------------

    /// Takes up to `max_count` blocks from spans and returns their number, which is 0 only if
    /// memory is refused. The last block has the lowest address.
    unsigned take(void** blocks, unsigned max_count, pages::SlowPath& path) noexcept;
    /// Returns blocks to their spans by setting their bits. Spans whose blocks are all home go back
    /// to the page heap. Returns the bytes of those spans.
    std::size_t bring_home(void* const* blocks, unsigned count, pages::Changes& changes) noexcept;

    /// Releases the memory of whole pages that contain only free blocks of spans that stay. The
    /// pages remain committed: they count as capacity, and the next access finds zeros.
    void drop_free_pages() noexcept;

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
    /// Returns whether a block begins at `p`. `entry` is the page's entry and belongs to this
    /// bucket. Takes no lock, so the result is meaningful only for blocks in use.
    bool begins_block(const void* p, pages::PageEntry entry) const noexcept {
        const char* const begin = static_cast<const char*>(traits_.block_at(*entry.span(), 0));
        const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(p) - begin);
        return layout().checked_index_at(offset) != layout().blocks;
    }

    // States of blocks, for pools with checks (bucket_states.hpp), without a lock ----------------

    /// Marks a block that came from a magazine or a span as in use. For a block in use already,
    /// sets another number of requested bytes.
    inline void begin_use(const void* block, std::size_t requested_bytes) noexcept;
    /// Like `begin_use`, with `States::hardened`. Returns false, and does nothing, if `block` is
    /// not the beginning of a free block of this bucket: a record was damaged.
    [[nodiscard]] inline bool begin_first_use(const void* block, std::size_t requested_bytes,
                                              pages::BlockOrigin origin) noexcept;
    /// Returns how the block, whose page has this entry in the page map, was allocated. REQUIRES:
    /// `States::hardened`, and the calling thread holds the block.
    inline pages::BlockStates::Origin& origin_of(const void* block,
                                                 pages::PageEntry entry) noexcept;
    /// Ends the use of the block at `p`, whose page has this entry in the page map. Returns true
    /// exactly once for each use. Returns false if no block in use begins at `p`, or if more than
    /// `max_requested` bytes were requested for it; the caller then reports the misuse. With
    /// `States::hardened`, `ended` receives how the block was allocated, unless it is null.
    struct EndedUse {
        std::size_t requested = 0;
        pages::BlockOrigin origin;
    };
    inline bool end_use(const void* p, pages::PageEntry entry, std::size_t max_requested,
                        EndedUse* ended = nullptr) noexcept;

    /// Returns the mark of the block that begins at `p`, whose page has this entry; nullptr if none
    /// begins there. Takes no lock. REQUIRES: the entry belongs to this bucket, whose blocks have
    /// marks, and its span stays.
    pages::BlockStates::Mark* mark_of(const void* p, pages::PageEntry entry) const noexcept {
        // Acquire pairs with the release in `give_states`.
        const auto* const states = entry.span()->states.load(std::memory_order_acquire);
        if (states == nullptr) return nullptr;
        const char* const first = states->first_block.load(std::memory_order_relaxed);
        const auto offset = static_cast<std::uint64_t>(static_cast<const char*>(p) - first);
        const std::uint64_t index = layout().checked_index_at(offset);
        return index == layout().blocks ? nullptr : &states->marks[index];
    }
    /// Returns the mark of a block that the caller holds.
    pages::BlockStates::Mark& mark_of(const void* block) const noexcept {
        return *mark_of(block, sources().heap.space().map().at(block));
    }

    // Magazines (bucket_depot.cpp) -----------------------------------------------------------

    /// Takes a magazine with blocks from the depot. Returns nullptr if there is none.
    Magazine* take_full() noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        Magazine* const magazine = depot == nullptr ? nullptr : depot->take_full();
        if (magazine != nullptr) note_kept(-static_cast<std::ptrdiff_t>(magazine->count));
        return magazine;
    }
    enum class MayMake : std::uint8_t { within_limit, always };
    /// Takes a magazine without blocks from the depot, or makes one. With `within_limit`, one is
    /// made only while the bucket's pointer arrays stay small relative to its capacity; with
    /// `always`, for a thread's own two magazines, without that limit. Returns nullptr if there is
    /// none.
    Magazine* take_empty(MayMake may_make) noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        Magazine* const magazine = depot == nullptr ? nullptr : depot->take_empty();
        return magazine != nullptr ? magazine : make_magazine(may_make);
    }
    /// Puts a magazine into the depot. It cannot fail: the depot exists, because room in it was
    /// reserved when the magazine was made.
    void give(Magazine& magazine) noexcept {
        Depot& depot = *depot_.load(std::memory_order_acquire);
        if (magazine.count != 0) {
            note_kept(magazine.count);
            depot.give_full(magazine);
        } else {
            depot.give_empty(magazine);
        }
    }
    /// Returns whether the depot may hold another magazine with this many blocks. It may if free
    /// memory stays within the retention limit and the shard's spans are at least half in use.
    /// Otherwise blocks go home, because only there are they taken from the fullest span first.
    bool may_keep(unsigned blocks) noexcept;
    /// The bytes of all blocks in the depot.
    std::size_t depot_bytes() const noexcept {
        const Depot* const depot = depot_.load(std::memory_order_acquire);
        return depot == nullptr ? 0 : depot->blocks() * block_bytes();
    }
    /// Returns at least `blocks` blocks of the depot to their spans, in whole magazines, or all if
    /// it has fewer. Returns the bytes of spans that went back to the page heap.
    std::size_t drain(std::size_t blocks, pages::Changes& changes) noexcept;
    /// Returns the blocks that stayed in the depot since the previous call to their spans. Returns
    /// the bytes of spans that went back to the page heap.
    std::size_t drain_unneeded(pages::Changes& changes) noexcept;
    /// Does what `drain_unneeded` does for the calling thread's shard, if at least an eighth of its
    /// blocks in the depot was taken since the last such call. Returns the bytes of spans that went
    /// back to the page heap.
    std::size_t drain_after_exchange(pages::Changes& changes) noexcept;
    /// Returns all blocks in the depot to their spans. With `Magazines::keep` the magazines stay in
    /// the depot; with `Magazines::destroy` they are freed.
    enum class Magazines : std::uint8_t { keep, destroy };
    void drain(Magazines magazines, pages::Changes& changes) noexcept;

    const BucketTraits& traits() const noexcept { return traits_; }
    const BucketLayout& layout() const noexcept { return traits_.layout; }
    std::size_t block_bytes() const noexcept { return traits_.block_bytes; }
    unsigned number() const noexcept { return traits_.number; }
    unsigned row() const noexcept { return traits_.row(); }

    /// The locks of all shards.
    void lock() noexcept;
    void unlock() noexcept;

private:
    BucketShard& own_shard() noexcept;
    BucketShard& shard_of(const void* block) noexcept;
    unsigned take_from_any(BucketShard& own, void** blocks, unsigned max_count,
                           pages::SlowPath& path) noexcept;
    std::size_t capacity() const noexcept;
    inline std::size_t requested_bytes_of(std::uint16_t wide_state) const noexcept;
    Depot* depot_for_giving() noexcept;
    std::size_t drain_unneeded(DepotShard& shard, pages::Changes& changes) noexcept;
    std::size_t empty_into_spans(Magazine& magazine, pages::Changes& changes) noexcept;
    void note_kept(std::ptrdiff_t blocks) noexcept {
        sources().heap.note_kept_elsewhere(blocks * static_cast<std::ptrdiff_t>(block_bytes()));
    }
    Magazine* make_magazine(MayMake may_make) noexcept;
    const BucketSources& sources() const noexcept { return traits_.sources; }

    const BucketTraits traits_;
    pages::PerShard<BucketShard> shards_;
    std::size_t magazines_ = 0;  // made and not destroyed; guarded by the lock of the first shard
    // Made at first use. Loads with acquire pair with the release store in `depot_for_giving`.
    std::atomic<Depot*> depot_ = nullptr;
};

}  // namespace tensorpool::blocks
