#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "blocks/bucket_layout.hpp"
#include "blocks/depot.hpp"
#include "blocks/magazine.hpp"
#include "pages/page_heap.hpp"
#include "pages/record_arena.hpp"
#include "statistics/metrics/pool_metrics.hpp"

namespace tensorpool::blocks {

/// What is kept of each block, for pools whose every call is checked: whether it is in use, or also
/// for how many bytes it was asked.
enum class States : std::uint8_t { none, uses, requests };

/// What every bucket of a pool works with.
struct BucketSources {
    const char* pool_name;  // for messages
    pages::PageHeap& heap;
    pages::RecordArena& records;
    MagazineStore& magazines;
    statistics::PoolTotals& totals;
    States states;
    unsigned series = 0;  // of block sizes
};

/// One size class of one pool: the spans its blocks are cut from, and the depot of magazines that
/// its threads exchange. Every block that was ever carved is in just one of these places: in use,
/// in a thread's magazine, in the depot, or home, its bit set in its span. Thread-safe.
class Bucket {
public:
    Bucket(unsigned number, const BucketSources& sources) noexcept;
    Bucket(const Bucket&) = delete;
    Bucket& operator=(const Bucket&) = delete;
    ~Bucket();

    // Blocks, from spans and to spans (bucket.cpp) -------------------------------------------

    /// Takes up to `most` blocks, at least one unless memory is refused; returns how many. The last
    /// one has the lowest address.
    unsigned take(void** blocks, unsigned most, pages::SlowPath& path) noexcept;
    /// Sets the blocks' bits; spans that are all home go back to the page heap. Returns their
    /// bytes.
    std::size_t bring_home(void* const* blocks, unsigned count, pages::Changes& changes) noexcept;

    /// Drops the whole pages that lie in blocks at home only, of spans that stay: they remain
    /// committed.
    void drop_free_pages() noexcept;

    /// What a block is, for checks and questions. The caller needs no claim to it.
    struct Finding {
        bool in_span = false;       // `p` lies in a carved block of this bucket
        bool home = false;          // and that block is in its span, free
        bool in_use = false;        // with states: a caller has it
        void* block = nullptr;      // where that block begins
        std::size_t requested = 0;  // with states of requests, of a block in use
    };
    Finding find(const void* p) noexcept;
    /// Whether a block begins at `p`, whose page has this entry, one of this bucket. Without a
    /// lock: means something only of blocks in use.
    bool begins_block(const void* p, pages::PageEntry entry) const noexcept {
        const pages::Span& span = *entry.span();
        return block_at(span, index_in(span, p)) == p;
    }

    // States of blocks, where they are kept (bucket_states.hpp), without a lock -------------------

    /// The block, out of a magazine or of a span, is in use now, or still and for other bytes.
    inline void begin_use(const void* block, std::size_t requested_bytes) noexcept;
    /// True once for each use: it has ended. False, where nothing but a stop is left, when `p`,
    /// with this entry in the page map, does not begin a block in use or more than this was asked
    /// for.
    inline bool end_use(const void* p, pages::PageEntry entry, std::size_t max_requested) noexcept;

    // Magazines (bucket_depot.cpp) -----------------------------------------------------------

    /// A magazine with blocks, or nullptr.
    Magazine* take_full() noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        Magazine* const magazine = depot == nullptr ? nullptr : depot->take_full();
        if (magazine != nullptr) note_kept(-static_cast<std::ptrdiff_t>(magazine->count));
        return magazine;
    }
    enum class MayMake : std::uint8_t { within_limit, always };
    /// A magazine without blocks. A thread's own two are made always; beyond those, only while the
    /// pointer arrays stay small beside the bucket's capacity. nullptr when none can be had.
    Magazine* take_empty(MayMake may_make) noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        Magazine* const magazine = depot == nullptr ? nullptr : depot->take_empty();
        return magazine != nullptr ? magazine : make_magazine(may_make);
    }
    /// There is a depot: the magazine was made with room in it.
    void give(Magazine& magazine) noexcept {
        Depot& depot = *depot_.load(std::memory_order_acquire);
        if (magazine.count != 0) {
            note_kept(magazine.count);
            depot.give_full(magazine);
        } else {
            depot.give_empty(magazine);
        }
    }
    /// Whether the depot may hold another magazine of so many blocks: no more free memory than
    /// retention allows, and nothing while spans are more than half empty, for only what goes home
    /// is taken from the fullest.
    bool may_keep(unsigned blocks) const noexcept;
    std::size_t depot_bytes() const noexcept {
        const Depot* const depot = depot_.load(std::memory_order_acquire);
        return depot == nullptr ? 0 : depot->blocks() * block_bytes();
    }
    /// Brings home so many blocks of the depot, in whole magazines, as far as it has them; the
    /// bytes of spans that went back to the page heap.
    std::size_t drain(std::size_t blocks, pages::Changes& changes) noexcept;
    /// The same for what the depot held all through since the last call.
    std::size_t drain_unneeded(pages::Changes& changes) noexcept;
    /// The same, if an eighth of what it holds was taken since.
    std::size_t drain_after_exchange(pages::Changes& changes) noexcept;
    /// Brings home all blocks in the depot. The magazines stay in it, or go with
    /// `Magazines::destroy`.
    enum class Magazines : std::uint8_t { keep, destroy };
    void drain(Magazines magazines, pages::Changes& changes) noexcept;

    const BucketLayout& layout() const noexcept { return layout_; }
    std::size_t block_bytes() const noexcept { return block_bytes_; }
    unsigned number() const noexcept { return number_; }
    /// Whose row of the statistics it counts in.
    unsigned row() const noexcept { return base::row_of(sources_.series, number_); }

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    pages::Span* span_with_room(pages::SlowPath& path) noexcept;
    pages::Span* new_span(pages::PageCount pages, pages::SlowPath& path) noexcept;
    unsigned fullness_of(const pages::Span& span) const noexcept;
    void list(pages::Span& span) noexcept;
    void unlist(pages::Span& span) noexcept;
    void drop_free_pages(const pages::Span& span) noexcept;
    unsigned take_home(pages::Span& span, void** blocks, unsigned most) noexcept;
    unsigned carve(pages::Span& span, void** blocks, unsigned most) noexcept;
    pages::Span& span_of(void* block) noexcept;
    unsigned index_in(const pages::Span& span, const void* p) const noexcept;
    void* block_at(const pages::Span& span, unsigned index) const noexcept;
    inline std::size_t requested_bytes_of(std::uint16_t wide_state) const noexcept;
    bool give_states(pages::Span& span) noexcept;
    void keep_states(pages::BlockStates* states) noexcept;
    bool is_ours(pages::PageEntry entry) const noexcept {
        return entry.kind() == kind_ && entry.pool_number() == sources_.heap.pool_number();
    }
    std::size_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
    void add_capacity(std::ptrdiff_t bytes) noexcept;
    void add_out(std::ptrdiff_t blocks) noexcept;
    Depot* depot_for_giving() noexcept;
    void note_kept(std::ptrdiff_t blocks) noexcept {
        sources_.heap.note_kept_elsewhere(blocks * static_cast<std::ptrdiff_t>(block_bytes()));
    }
    Magazine* make_magazine(MayMake may_make) noexcept;

    const unsigned number_;
    const BucketSources& sources_;
    const BucketLayout& layout_;
    const std::size_t block_bytes_;
    const pages::PageKind kind_;
    // Written under mutex_, read without it: figures.
    std::atomic<std::size_t> capacity_ = 0;  // bytes of its spans
    std::atomic<std::size_t> out_ = 0;       // blocks that are not home
    std::mutex mutex_;
    // Below: under mutex_.
    // Spans with room, by how many of their blocks are out. The fullest serve first, so that the
    // others become free as a whole.
    static constexpr unsigned fullness_lists = 8;
    pages::SpanList with_room_[fullness_lists];
    unsigned lists_used_ = 0;  // a bit for each list that is not empty
    const unsigned fullness_per_block_;
    std::size_t magazines_ = 0;  // made and not destroyed
    pages::BlockStates* free_states_ = nullptr;
    // Made at first use. Acquire pairs with the release that publishes it.
    std::atomic<Depot*> depot_ = nullptr;
};

}  // namespace tensorpool::blocks
