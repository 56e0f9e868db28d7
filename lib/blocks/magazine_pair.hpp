#pragma once

#include <tensorpool/detail/thread_cache.hpp>

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
    /// Notes a crossing: a thread took blocks that another one gave.
    void note_crossing() noexcept {
        if (!has_crossings()) has_crossings_.store(true, std::memory_order_relaxed);
    }
    /// Returns whether there was ever one.
    bool has_crossings() const noexcept { return has_crossings_.load(std::memory_order_relaxed); }
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
    std::atomic<bool> has_crossings_ = false;  // relaxed: a hint
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

// An address above every magazine.
inline void** beyond_all() noexcept {
    return reinterpret_cast<void**>(UINTPTR_MAX);
}

/// The loaded magazine of one bucket in a thread's cache, and what the thread's inline paths see of
/// it (detail::LoadedMagazine). They see the blocks from a bottom on, and room up to a capacity.
///
/// Of a marked set, the blocks below the bottom are free. Those above it are *exposed*: charged to
/// a budget and marked with it. Inline paths see no room: they cannot tell its blocks from others.
///
/// Not thread-safe: Cache's lock guards all but the inline paths' part.
class LoadedBlocks {
public:
    /// Begins without a magazine.
    void begin(Bucket& bucket, detail::LoadedMagazine& view,
               detail::BucketCounters& counted) noexcept {
        *this = {};
        bucket_ = &bucket;
        view_ = &view;
        counted_ = &counted;
        is_marked_ = bucket.traits.sources.is_marked;
        show(nullptr, nullptr, nullptr);
    }

    Bucket& bucket() const noexcept { return *bucket_; }
    detail::BucketCounters& counted() const noexcept { return *counted_; }
    Magazine* magazine() const noexcept { return magazine_; }
    /// Shows the blocks of a magazine to inline paths, and room for `capacity` blocks.
    void load(Magazine& magazine, unsigned capacity) noexcept {
        magazine_ = &magazine;
        void** const bottom = magazine.blocks;
        void** const top = bottom + magazine.count;
        if (is_marked_) return show(top, top, nullptr);
        show(bottom, top, capacity == 0 ? bottom : std::max(top, bottom + capacity));
    }
    /// Returns the magazine; then there is none. REQUIRES: there is one, and no block is exposed.
    Magazine& unload() noexcept {
        magazine_->count = static_cast<unsigned>(view_->top - magazine_->blocks);
        show(nullptr, nullptr, nullptr);
        return *std::exchange(magazine_, nullptr);
    }
    void set_capacity(unsigned capacity) noexcept {
        if (magazine_ == nullptr || is_marked_) return;
        view_->limit.store(magazine_->blocks + capacity, std::memory_order_relaxed);
    }
    /// Returns whether a slow path may add a block.
    bool has_room(unsigned capacity) const noexcept {
        if (!is_marked_) return view_->top < view_->limit.load(std::memory_order_relaxed);
        return magazine_ != nullptr && view_->top < magazine_->blocks + capacity;
    }
    bool holds(const void* block) const noexcept {
        return magazine_ != nullptr &&
               std::find(magazine_->blocks, view_->top, block) != view_->top;
    }

    // Taking back of blocks by another thread (Cache::close).
    /// Ends what inline paths see.
    void close() noexcept {
        begin_ = 0;
        exposed_ =
            magazine_ == nullptr ? 0 : index_of(view_->bottom.load(std::memory_order_relaxed));
        close_again();
    }
    /// Does what `close` does, if the owner has not called `open` since.
    void close_again() noexcept {
        view_->bottom.store(beyond_all(), std::memory_order_relaxed);
        view_->limit.store(nullptr, std::memory_order_relaxed);
    }
    /// Called by the owner after `close`: shows what is left. Another thread may have taken blocks
    /// from the bottom of the magazine. Moves the rest down.
    void open(unsigned capacity) noexcept {
        if (magazine_ == nullptr) return show(nullptr, nullptr, nullptr);
        void** const blocks = magazine_->blocks;
        void** const end = std::move(blocks + begin_, view_->top, blocks);
        magazine_->count = static_cast<unsigned>(end - blocks);
        load(*magazine_, capacity);
        view_->bottom.store(blocks + (exposed_ - begin_), std::memory_order_relaxed);
    }
    /// Returns all blocks to their spans. Returns the bytes of those that were exposed, which the
    /// caller refunds. REQUIRES: `close` was called. The magazine itself stays: a call of its
    /// thread that is in progress may read or write the entry at its top.
    std::size_t take_back(pages::Changes& changes) noexcept {
        if (magazine_ == nullptr) return 0;
        void** const blocks = magazine_->blocks;
        // Acquire pairs with the owner's release in `push`. A `pop` of the owner that is about to
        // fail may have lowered the top below the bottom that an earlier call left.
        void** const top = std::max(blocks + exposed_,
                                    std::atomic_ref(view_->top).load(std::memory_order_acquire));
        const unsigned exposed = is_marked_ ? index_of(top) - exposed_ : 0U;
        set_marks(top - exposed, top, nullptr);
        if (const unsigned count = index_of(top) - begin_) {
            detail::add_release(counted_->returned, count);
            bucket_->spans.bring_home(blocks + begin_, count, changes);
        }
        begin_ = exposed_ = index_of(top);
        view_->bottom.store(top, std::memory_order_relaxed);
        view_->limit.store(top, std::memory_order_relaxed);
        return exposed * bucket_->traits.block_bytes;
    }

    // Of a marked set.
    /// The number of blocks below the bottom.
    std::size_t concealed() const noexcept {
        if (magazine_ == nullptr) return 0;
        void** const bottom = view_->bottom.load(std::memory_order_relaxed);
        return static_cast<std::size_t>(bottom - magazine_->blocks);
    }
    /// The number of blocks to expose next: one at first, then twice as many each time, but not
    /// more than there are.
    std::size_t to_expose() const noexcept {
        return std::min(std::size_t{1} << more_to_expose_, concealed());
    }
    /// Exposes the uppermost `count` blocks, marked with `mark`, and returns where they lie.
    /// REQUIRES: none is exposed.
    void** expose(std::size_t count, base::BlockMark& mark) noexcept {
        if (more_to_expose_ < 7) ++more_to_expose_;
        void** const bottom = view_->top - count;
        set_marks(bottom, view_->top, &mark);
        view_->bottom.store(bottom, std::memory_order_relaxed);
        return bottom;
    }
    /// Ends the marks of all exposed blocks. Returns their bytes, which the caller refunds.
    std::size_t conceal() noexcept {
        more_to_expose_ = 0;
        void** const bottom = view_->bottom.load(std::memory_order_relaxed);
        set_marks(bottom, view_->top, nullptr);
        view_->bottom.store(view_->top, std::memory_order_relaxed);
        return static_cast<std::size_t>(view_->top - bottom) * bucket_->traits.block_bytes;
    }
    /// Accepts a freed block that keeps its mark, which is that of the exposed ones. REQUIRES:
    /// there is room.
    void push_exposed(void* block) noexcept {
        *view_->top = block;
        // Release is for a thread that takes the blocks.
        std::atomic_ref(view_->top).store(view_->top + 1, std::memory_order_release);
        detail::add_release(counted_->deallocations, 1);
    }
    /// Accepts a freed block without a mark, below the exposed ones. REQUIRES: there is room.
    void push_concealed(void* block) noexcept {
        void** const bottom = view_->bottom.load(std::memory_order_relaxed);
        if (bottom != view_->top) std::swap(*bottom, block);
        view_->bottom.store(bottom + 1, std::memory_order_relaxed);
        push_exposed(block);
    }

private:
    std::uint16_t index_of(void** position) const noexcept {
        return static_cast<std::uint16_t>(position - magazine_->blocks);
    }
    void show(void** bottom, void** top, void** limit) noexcept {
        std::atomic_ref(view_->top).store(top, std::memory_order_relaxed);
        view_->bottom.store(bottom, std::memory_order_relaxed);
        view_->limit.store(limit, std::memory_order_relaxed);
    }
    void set_marks(void** from, void** to, base::BlockMark* mark) noexcept {
        for (void** at = from; at != to; ++at) {
            mark_of(bucket_->traits, *at).store(mark, std::memory_order_relaxed);
        }
    }

    Bucket* bucket_ = nullptr;
    detail::LoadedMagazine* view_ = nullptr;
    detail::BucketCounters* counted_ = nullptr;
    Magazine* magazine_ = nullptr;
    // After `close`, as indices: the first block of the magazine that is left, and the first one
    // that inline paths saw.
    std::uint16_t begin_ = 0;
    std::uint16_t exposed_ = 0;
    std::uint8_t more_to_expose_ = 0;  // the logarithm of `to_expose`
    bool is_marked_ = false;
};

/// The two magazines of one bucket in a thread's cache, loaded and spare, and how many blocks they
/// may hold. Not thread-safe: Cache's lock guards it.
class MagazinePair {
public:
    /// Begins without magazines, and with the bucket's first capacity.
    void begin(Bucket& bucket, detail::LoadedMagazine& view,
               detail::BucketCounters& counted) noexcept {
        *this = {};
        loaded.begin(bucket, view, counted);
        capacity = largest = static_cast<std::uint8_t>(bucket.traits.layout.first_refill);
    }

    LoadedBlocks loaded;

    // Changed by ParkedRoom.
    std::uint8_t capacity = 0;  // of a magazine
    // The most blocks that the loaded magazine may hold. It exceeds `capacity` after a fuller
    // magazine of another thread came from the depot.
    std::uint8_t largest = 0;
    bool may_park = false;       // room for `capacity` and `largest` blocks was reserved
    bool went_to_depot = false;  // since the capacity last changed
    /// The bytes for which both magazines have room.
    std::size_t room_bytes() const noexcept {
        return (capacity + largest) * loaded.bucket().traits.block_bytes;
    }
    /// The blocks that may be kept.
    unsigned usable_capacity() const noexcept { return may_park ? capacity : 0; }

    /// Returns whether `block` lies in one of the magazines.
    bool parks(const void* block) const noexcept {
        if (loaded.holds(block)) return true;
        if (spare_ == nullptr) return false;
        const void* const* const end = spare_->blocks + spare_->count;
        return std::find<const void* const*>(spare_->blocks, end, block) != end;
    }
    /// Swaps the magazines if the spare has blocks. Returns whether it did.
    bool load_full_spare() noexcept {
        if (spare_ == nullptr || spare_->count == 0) return false;
        swap();
        return true;
    }
    /// Swaps the magazines if there are two and the spare has no blocks. Returns whether it did.
    bool load_empty_spare() noexcept {
        if (loaded.magazine() == nullptr || spare_ == nullptr || spare_->count != 0) return false;
        swap();
        return true;
    }
    /// Loads `magazine`. The loaded one becomes the spare, and the spare goes to the depot.
    void load(Magazine& magazine) noexcept {
        // The giver of a magazine is unknown if its thread may have ended.
        if (magazine.count != 0 && magazine.giver != this && !platform::is_single_threaded())
            loaded.bucket().depot.note_crossing();
        if (spare_ != nullptr) give(*spare_, this);
        spare_ = &magazine;
        swap();
    }
    /// Loads a magazine without blocks from the depot, or the spare after its blocks went home.
    /// Returns false if there is none. REQUIRES: both magazines are full or do not exist.
    bool load_empty(pages::Changes& changes) noexcept {
        const auto may_make =
            spare_ == nullptr ? BucketDepot::MayMake::always : BucketDepot::MayMake::within_limit;
        const auto may_go_to_depot = [&] {
            return !must_go_home(*spare_) && loaded.bucket().depot.may_keep(spare_->count);
        };
        Magazine* empty = nullptr;
        if (spare_ == nullptr || may_go_to_depot()) {
            empty = loaded.bucket().depot.take_empty(may_make);
            loaded.bucket().depot.drain_after_exchange(changes);
        }
        if (empty == nullptr && spare_ != nullptr) {
            empty = std::exchange(spare_, nullptr);
            bring_home(*empty, changes);
        }
        if (empty == nullptr) return false;
        empty->count = 0;
        load(*empty);
        return true;
    }
    /// Returns the loaded magazine; loads one without blocks if there is none. Returns nullptr if
    /// memory is short.
    Magazine* loaded_or_empty() noexcept {
        if (loaded.magazine() == nullptr) {
            Magazine* const empty = loaded.bucket().depot.take_empty(BucketDepot::MayMake::always);
            if (empty == nullptr) return nullptr;
            empty->count = 0;
            loaded.load(*empty, usable_capacity());
        }
        return loaded.magazine();
    }
    /// Gives both magazines to the depot: with their blocks, unless these go home because they
    /// split cache lines. REQUIRES: no block is exposed.
    void give_back(pages::Changes& changes) noexcept {
        const auto give_one = [&](Magazine& magazine) {
            if (must_go_home(magazine)) {
                bring_home(magazine, changes);
                magazine.count = 0;
            }
            give(magazine, nullptr);  // the thread may end, and another one get this pair
        };
        if (spare_ != nullptr) give_one(*std::exchange(spare_, nullptr));
        if (loaded.magazine() != nullptr) give_one(loaded.unload());
    }
    /// Returns all blocks to their spans, on another thread. Returns the bytes of those that were
    /// exposed, which the caller refunds. REQUIRES: `loaded` is closed.
    std::size_t take_back(pages::Changes& changes) noexcept {
        const std::size_t exposed = loaded.take_back(changes);
        if (Magazine* const spare = std::exchange(spare_, nullptr)) {
            bring_home(*spare, changes);
            spare->count = 0;
            loaded.bucket().depot.give(*spare);
        }
        return exposed;
    }

    /// Returns whether the thread made no call for the bucket since the previous query.
    bool was_idle() noexcept {
        const auto operations = static_cast<std::uint32_t>(
            loaded.counted().allocations.load(std::memory_order_relaxed) +
            loaded.counted().deallocations.load(std::memory_order_relaxed));
        return std::exchange(seen_, operations) == operations;
    }

private:
    void swap() noexcept {
        Magazine* const spare = std::exchange(spare_, nullptr);
        if (loaded.magazine() != nullptr) spare_ = &loaded.unload();
        loaded.load(*spare, usable_capacity());
    }
    void give(Magazine& magazine, const MagazinePair* giver) noexcept {
        magazine.giver = giver;
        detail::add_release(loaded.counted().returned, magazine.count);
        loaded.bucket().depot.give(magazine);
    }
    // Going home costs three times as much as the depot, so it begins with the first crossing.
    bool must_go_home(const Magazine& magazine) const noexcept {
        return loaded.bucket().depot.has_crossings() &&
               splits_lines(magazine, loaded.bucket().traits.block_bytes);
    }
    void bring_home(const Magazine& magazine, pages::Changes& changes) noexcept {
        if (magazine.count == 0) return;
        detail::add_release(loaded.counted().returned, magazine.count);
        loaded.bucket().spans.bring_home(magazine.blocks, magazine.count, changes);
    }

    std::uint32_t seen_ = 0;  // operations at the last `was_idle`, modulo 2^32
    Magazine* spare_ = nullptr;
};

}  // namespace tensorpool::blocks
