#pragma once

#include <atomic>
#include <mutex>

#include "blocks/bucket_layout.hpp"
#include "blocks/depot.hpp"
#include "blocks/magazine.hpp"
#include "pages/page_heap.hpp"
#include "pages/record_arena.hpp"
#include "statistics/metrics/pool_metrics.hpp"

namespace tensorpool::blocks {

/// What every bucket of a pool works with.
struct BucketSources {
    const char* pool_name;  // for messages
    pages::PageHeap& heap;
    pages::RecordArena& records;
    MagazineStore& magazines;
    statistics::PoolTotals& totals;
    bool remember_requests;
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
    /// Sets the blocks' bits; spans that are all home go back to the page heap.
    void bring_home(void* const* blocks, unsigned count, pages::Changes& changes) noexcept;

    /// What a block is, for checks and questions. The caller needs no claim to it.
    struct Finding {
        bool in_span = false;   // `p` lies in a carved block of this bucket
        bool home = false;      // and that block is in its span, free
        void* block = nullptr;  // where that block begins
        std::uint32_t requested = 0;
    };
    Finding find(const void* p) noexcept;
    /// With `remember_requests`: what was asked for.
    void remember(void* block, std::size_t requested_bytes) noexcept;

    // Magazines (bucket_depot.cpp) -----------------------------------------------------------

    /// A magazine with blocks, or nullptr.
    Magazine* take_full() noexcept {
        Depot* const depot = depot_.load(std::memory_order_acquire);
        return depot == nullptr ? nullptr : depot->take_full();
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
            depot.give_full(magazine);
        } else {
            depot.give_empty(magazine);
        }
    }
    /// Brings home all blocks in the depot. The magazines stay in it, or go with
    /// `Magazines::destroy`.
    enum class Magazines : std::uint8_t { keep, destroy };
    void drain(Magazines magazines, pages::Changes& changes) noexcept;

    const BucketLayout& layout() const noexcept { return layout_; }
    std::size_t block_bytes() const noexcept { return detail::bucket_bytes(number_); }
    unsigned number() const noexcept { return number_; }

    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }

private:
    pages::Span* span_with_room(pages::SlowPath& path) noexcept;
    pages::Span* new_span(pages::PageCount pages, pages::SlowPath& path) noexcept;
    unsigned take_home(pages::Span& span, void** blocks, unsigned most) noexcept;
    unsigned carve(pages::Span& span, void** blocks, unsigned most) noexcept;
    pages::Span& span_of(void* block) noexcept;
    unsigned index_in(const pages::Span& span, const void* p) const noexcept;
    void* block_at(const pages::Span& span, unsigned index) const noexcept;
    bool make_memory_of_requests(pages::Span& span) noexcept;
    void drop_memory_of_requests(pages::Span& span) noexcept;
    std::size_t capacity() const noexcept;
    void add_capacity(std::ptrdiff_t bytes) noexcept;
    Depot* depot_for_giving() noexcept;
    Magazine* make_magazine(MayMake may_make) noexcept;

    const unsigned number_;
    const BucketLayout& layout_;
    const BucketSources& sources_;
    std::mutex mutex_;
    // Below: under mutex_.
    pages::SpanList with_room_;
    std::size_t magazines_ = 0;  // made and not destroyed
    std::size_t rooms_ = 0;      // nodes in either list of the depot; never less than magazines_
    // Made at first use. Acquire pairs with the release that publishes it.
    std::atomic<Depot*> depot_ = nullptr;
};

}  // namespace tensorpool::blocks
