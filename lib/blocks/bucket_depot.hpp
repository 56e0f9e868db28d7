#pragma once

#include "blocks/bucket_spans.hpp"
#include "blocks/depot.hpp"

namespace tensorpool::blocks {

// With less idle memory than this, returning it gains nothing.
inline constexpr std::size_t min_idle_bytes = std::size_t{2} << 20;

inline constexpr std::size_t min_array_bytes = std::size_t{256} << 10;

// The pointer arrays of a depot stay below 1/256 of the bucket's capacity, so that together with
// the page map and span records (1/180 at 64 B) all records stay below 1 % of it. A minimum of
// 256 KiB is always allowed, so that threads can exchange magazines.
inline constexpr std::size_t capacity_per_array_byte = 256;

/// The depot of one bucket, which is made when it is first needed, and the limits of what it keeps.
/// Thread-safe.
class BucketDepot {
public:
    /// Blocks that the depot may not keep go home to `spans`.
    explicit BucketDepot(BucketSpans& spans) noexcept : spans_(spans) {}
    ~BucketDepot() {
        // Its memory is freed with the records, blocks and magazines with the pool.
        if (Depot* const depot = depot_.load(std::memory_order_relaxed)) depot->~Depot();
    }

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
    void give(Magazine& magazine) noexcept {
        Depot& depot = *depot_.load(std::memory_order_acquire);
        if (magazine.count != 0) {
            note_kept(magazine.count);
            depot.give_full(magazine);
        } else {
            depot.give_empty(magazine);
        }
    }
    /// Returns whether it may hold another magazine with this many blocks. It may if free memory
    /// stays within the retention limit and the shard's spans are at least half in use. Otherwise
    /// blocks go home, because only there are they taken from the fullest span first.
    bool may_keep(unsigned blocks) noexcept {
        const std::size_t bytes = blocks * spans_.traits().block_bytes;
        // A finer size gets a quarter, so that the three finer sizes of a row together keep about
        // as much as the row's bucket.
        const std::size_t idle = sources().series == 0 ? min_idle_bytes : min_idle_bytes / 4;
        return spans_.are_at_least_half_out(idle) && sources().heap.kept().may_keep(bytes);
    }
    /// The bytes of all blocks.
    std::size_t bytes() const noexcept {
        const Depot* const depot = depot_.load(std::memory_order_acquire);
        return depot == nullptr ? 0 : depot->blocks() * spans_.traits().block_bytes;
    }

    /// Returns the blocks that stayed since the previous call to their spans. Returns the bytes of
    /// spans that went back to the page heap.
    std::size_t drain_unneeded(pages::Changes& changes) noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        if (depot == nullptr) return 0;
        std::size_t bytes = 0;
        depot->for_each_shard([&](DepotShard& shard) { bytes += drain_unneeded(shard, changes); });
        return bytes;
    }
    /// Does what `drain_unneeded` does for the calling thread's shard, if at least an eighth of its
    /// blocks was taken since the last such call. A depot's period ends by the clock or here. If
    /// much of its content was taken, blocks that stayed all the time are not needed.
    void drain_after_exchange(pages::Changes& changes) noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        if (depot == nullptr) return;
        DepotShard& own = depot->own_shard();
        const std::size_t bytes = own.blocks() * spans_.traits().block_bytes;
        if (bytes >= min_idle_bytes && own.taken() >= own.blocks() / 8)
            drain_unneeded(own, changes);
    }
    /// Returns all blocks to their spans. With `Magazines::keep` the magazines stay; with
    /// `Magazines::destroy` they are freed.
    enum class Magazines : std::uint8_t { keep, destroy };
    void drain(Magazines magazines, pages::Changes& changes) noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        if (depot == nullptr) return;
        MagazineList emptied;
        const auto empty = [&](Magazine& magazine) {
            bring_home(magazine, changes);
            emptied.push_front(magazine);
        };
        while (Magazine* const magazine = take_full()) empty(*magazine);
        if (magazines == Magazines::keep) {
            while (!emptied.empty()) {
                Magazine& magazine = emptied.front();
                emptied.pop_front();
                depot->give_empty(magazine);
            }
            return;
        }
        while (Magazine* const magazine = depot->take_empty()) empty(*magazine);
        {
            const std::lock_guard guard(spans_.first_shard());
            for (Magazine& magazine : emptied) {
                depot->leave(magazine);
                --magazines_;
            }
        }
        sources().magazines.destroy(emptied);
    }

private:
    std::size_t drain_unneeded(DepotShard& shard, pages::Changes& changes) noexcept {
        const std::size_t unneeded = shard.unneeded();
        std::size_t bytes = 0;
        for (std::size_t drained = 0; drained < unneeded;) {
            Magazine* const magazine = shard.take_full();
            if (magazine == nullptr) break;
            note_kept(-static_cast<std::ptrdiff_t>(magazine->count));
            drained += magazine->count;
            bytes += bring_home(*magazine, changes);
            give(*magazine);
        }
        shard.begin_period();
        return bytes;
    }
    std::size_t bring_home(Magazine& magazine, pages::Changes& changes) noexcept {
        const std::size_t bytes = spans_.bring_home(magazine.blocks, magazine.count, changes);
        magazine.count = 0;
        return bytes;
    }
    void note_kept(std::ptrdiff_t blocks) noexcept {
        const auto block_bytes = static_cast<std::ptrdiff_t>(spans_.traits().block_bytes);
        sources().heap.kept().note_elsewhere(blocks * block_bytes);
    }
    Magazine* make_magazine(MayMake may_make) noexcept {
        const std::lock_guard guard(spans_.first_shard());
        const std::size_t limit =
            std::max(spans_.capacity() / capacity_per_array_byte, min_array_bytes);
        if (may_make == MayMake::within_limit && magazines_ * sizeof(Magazine) >= limit)
            return nullptr;
        Depot* const depot = make_depot();
        if (depot == nullptr) return nullptr;
        Magazine* const magazine = sources().magazines.make();
        if (magazine == nullptr) return nullptr;
        if (depot->enter(*magazine)) {
            ++magazines_;
            return magazine;
        }
        MagazineList unused;
        unused.push_front(*magazine);
        sources().magazines.destroy(unused);
        return nullptr;
    }
    Depot* make_depot() noexcept {
        Depot* depot = depot_.load(std::memory_order_relaxed);
        if (depot != nullptr) return depot;
        void* const memory = sources().records.allocate(sizeof(Depot), alignof(Depot));
        if (memory == nullptr) return nullptr;
        try {
            depot = new (memory) Depot(sources().records);
        } catch (const std::bad_alloc&) {
            return nullptr;
        }
        depot_.store(depot, std::memory_order_release);
        return depot;
    }
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
