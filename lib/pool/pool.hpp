#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pool_options.hpp>
#include <tensorpool/statistics.hpp>

#include "blocks/bucket_set.hpp"
#include "blocks/thread_caches.hpp"
#include "blocks/thread_registry.hpp"
#include "pages/large_blocks.hpp"
#include "pages/page_heap.hpp"
#include "pages/record_arena.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/pool_list.hpp"
#include "statistics/segment/owned_record.hpp"
#include "statistics/segment/pool_counters.hpp"
#include "statistics/sums/snapshot_sources.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

/// Whether the pool of this number serves the `malloc` of the process, whose callers touch their
/// pages themselves.
bool serves_malloc(unsigned pool_number) noexcept;

/// What stands behind a MemoryPool: wires pages, buckets and counters of one pool, and turns what
/// they refuse into errors and events. Lies in memory from the system, not from malloc. Stands in
/// every snapshot from when it is whole until it goes.
class Pool final : private statistics::SnapshotSource {
public:
    /// Makes a pool. Returns nullptr when the system has no memory for its records, or no number is
    /// left.
    static Pool* make(const PoolOptions& options);
    /// Makes a pool with a number that is set aside. Returns nullptr when the system has no memory
    /// for its records.
    static Pool* make(const PoolOptions& options, unsigned number);
    static void destroy(Pool& pool) noexcept;

    /// Who touches fresh pages of a block of whole pages first.
    enum class FirstTouch : bool { by_caller, by_pool };
    /// What the inline path does not serve: a block of whole pages, any of a pool with checks, and
    /// those that a thread's loaded magazine has none of. Throws AllocationError where there is
    /// none.
    void* allocate_rest(std::size_t bytes) {
        if (bytes > largest_block_bytes) return allocate_pages(bytes);
        if (checked()) {
            if (void* const block = take_parked_block(bytes)) return block;
        }
        return allocate_or_throw(bytes, smallest_block_bytes);
    }
    /// A free block of whole pages of just this size, or nullptr where none is at hand. `bytes` is
    /// more than the largest bucket's.
    void* take_free_pages(std::size_t bytes) noexcept;
    /// From now on requests that want an alignment of `base::finer_alignment` at most get finer
    /// sizes (base/block_sizes.hpp), unless calls are checked or memory is short. The numbers
    /// behind the pool's are set aside. One thread at a time.
    void offer_finer_sizes() noexcept;
    /// A block, or nullptr; then `path.refusal` says why, and nothing is counted but the failure.
    void* allocate(std::size_t bytes, std::size_t alignment, pages::SlowPath& path,
                   FirstTouch first_touch = FirstTouch::by_caller) noexcept;
    /// A block; throws AllocationError where there is none.
    void* allocate_or_throw(std::size_t bytes, std::size_t alignment,
                            FirstTouch first_touch = FirstTouch::by_caller);
    void* allocate_zeroed(std::size_t bytes, pages::SlowPath& path) noexcept;
    void* allocate_zeroed(std::size_t bytes);
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes);
    /// The block at `p`, in use, with room for `bytes` and its content, without a copy: where it
    /// is, or where its pages were moved to. nullptr, and it is as it was, where that cannot be
    /// had, is no block of whole pages of this pool, or has that room already.
    void* lengthen(void* p, std::size_t bytes) noexcept;
    [[noreturn]] void fail(std::size_t bytes, const pages::Refusal& refusal) const;

    void deallocate(void* p) noexcept;
    void deallocate(void* p, std::size_t bytes) noexcept;
    void deallocate(void* p, std::size_t bytes, std::size_t alignment) noexcept;

    bool reserve(std::size_t capacity, pages::SlowPath& path) noexcept;
    std::size_t trim() noexcept;
    void set_max_capacity(std::size_t bytes) noexcept;
    std::size_t max_capacity() const noexcept;
    bool owns(const void* p) noexcept;
    std::size_t usable_size(const void* p) noexcept;

    PoolStatistics statistics() const noexcept;
    const statistics::PoolCounters& slots() const noexcept { return slots_; }
    std::size_t capacity() const noexcept override { return heap_.capacity(); }
    const std::string& name() const noexcept { return options_.name; }
    /// The entry of the threads' tables: where their caches stand, or the one that is always empty.
    unsigned table_number() const noexcept;

    /// What a look in the background finds once for all pools.
    struct Moment {
        std::uint64_t now_ns = 0;
        bool is_memory_short = false;
    };
    /// What the background trimmer does for this pool, if that wants it: at the end of a period
    /// what a slow path would do, and after a period without any call all that `trim` does, but for
    /// what `reserve` prepared. Returns the nanoseconds until the next look, 10 ms at least;
    /// `platform::no_timeout` where nothing is left to give back before the next call. One thread
    /// at a time.
    std::uint64_t look_in_background(Moment moment, pages::Changes& changes) noexcept;
    /// Tells the timeline and the owner what a call did. No lock is held.
    void tell(const pages::Changes& changes) noexcept;
    ListedPool& listed() noexcept { return listed_; }

private:
    Pool(PoolOptions&& options, unsigned number,
         statistics::OwnedRecord<statistics::PoolRecord>&& record) noexcept;
    ~Pool();

    // pool.cpp
    bool has_finer_sizes() const noexcept {
        return finer_.load(std::memory_order_acquire) != nullptr;
    }
    blocks::Cache* attach(blocks::BucketSet& set) noexcept;
    void* try_once(std::size_t bytes, std::size_t alignment, pages::SlowPath& path) noexcept;
    void* allocate_block(blocks::BucketSet& set, unsigned bucket, std::size_t bytes,
                         pages::SlowPath& path) noexcept;
    void* allocate_finest(std::size_t bytes, pages::SlowPath& path) noexcept;
    blocks::BucketSet& series(unsigned number) noexcept {
        return number == 0 ? buckets_ : finer_.load(std::memory_order_acquire)[number - 1];
    }
    void tell_recorder_of_end(void* p) noexcept;
    void record_end(void* p) noexcept;
    [[gnu::noinline]] void free_unchecked_block(blocks::BucketSet& set, unsigned bucket,
                                                void* p) noexcept;
    void free_block(blocks::BucketSet& set, unsigned bucket, void* p,
                    pages::Changes& changes) noexcept;

    // pool_large.cpp: blocks of whole pages
    void* allocate_pages(std::size_t bytes);
    [[gnu::noinline]] void* allocate_other_pages(std::size_t bytes);
    // What was freed last; one of another size, or from the cache of all threads.
    void* take_last_pages(std::size_t bytes) noexcept;
    [[gnu::noinline]] void* take_other_pages(std::size_t bytes) noexcept;
    void* allocate_large(std::size_t bytes, std::size_t alignment, pages::SlowPath& path) noexcept;
    void prefault(void* block, std::size_t bytes, const pages::Changes& changes) noexcept;
    enum class Source : std::uint8_t { cache, extents, system };
    void* hand_out(blocks::Cache* cache, pages::Span& span, std::size_t bytes,
                   Source source) noexcept;
    void* hand_out_parked(blocks::Cache& cache, pages::Span& span, std::size_t bytes) noexcept;
    void free_pages(void* p) noexcept;
    void free_large(pages::Span& span) noexcept;
    void free_large_slow(pages::Span& span) noexcept;
    // Of their own, so that `free_pages` and `free_large` save no registers for them.
    [[gnu::noinline]] void free_watched_pages(void* p) noexcept;
    [[gnu::noinline]] void look_after_free(bool is_time) noexcept;
    void* extend(pages::Span& span, std::size_t bytes, pages::SlowPath& path) noexcept;
    void* move(pages::Span& span, std::size_t bytes, pages::SlowPath& path) noexcept;
    template <class Function>
    void count_large(blocks::Cache* cache, Function function) noexcept;
    void hold(blocks::Cache* cache, std::size_t bytes) noexcept;
    void let_go(blocks::Cache* cache, std::size_t bytes) noexcept;

    // pool_memory.cpp: what is free
    bool gather(pages::Changes& changes) noexcept;
    bool empty_caches(blocks::Bucket::Magazines magazines, pages::Changes& changes) noexcept;
    bool keep_to_retention(pages::Changes& changes) noexcept;
    AllocationFailure describe(std::size_t bytes, const pages::Refusal& refusal) const noexcept;
    void count_failure(std::size_t bytes, const pages::Refusal& refusal) noexcept;
    void tell(PoolEvent::Kind kind, std::size_t bytes, const char* limit) noexcept;
    void add_to(Snapshot& snapshot) const override;
    Identity identify() const noexcept override;
    std::uint64_t id() const noexcept;

    // pool_background.cpp: while no call does it
    void end_slow_path(const pages::Changes& changes) noexcept;
    bool may_skip_end() const noexcept {
        return options_.retain.background == BackgroundTrim::off &&
               !background_trimmer().is_asleep();
    }
    bool wants_background_trimmer() const noexcept;

    // pool_checks.cpp: what a pointer is
    struct Finding {
        enum class What { block, interior, freed, foreign } what = What::foreign;
        void* block = nullptr;  // where the block begins, for `block` and `interior`
        unsigned bucket = detail::bucket_count;  // or that, for blocks of whole pages
        std::size_t usable = 0;
        std::size_t requested = 0;
    };
    Finding find(const void* p) noexcept;
    Finding find_pages(const void* p) noexcept;
    // For blocks of whole pages the look-up tells everything, so every free is checked.
    pages::Span& large_span_of(void* p) noexcept {
        if (pages::Span* const span = large_.find_in_use(p)) [[likely]]
            return *span;
        stop_at(p);
    }
    /// What a caller says of the block that it frees.
    struct Said {
        static constexpr unsigned nothing = ~0U;
        std::size_t bytes = 0;
        unsigned bucket = nothing;  // that would have served the request, or `bucket_count`

        bool agrees(unsigned with_bucket) const noexcept {
            return bucket == with_bucket || bucket == nothing;
        }
    };
    void* take_parked_block(std::size_t bytes) noexcept;
    void deallocate_checked(void* p, Said said) noexcept;
    void free_checked_pages(void* p, Said said) noexcept;
    void free_block(blocks::BucketSet& set, unsigned bucket, void* p) noexcept;
    std::size_t max_requested(Said said) const noexcept;
    [[noreturn]] void stop_at(void* p) noexcept;
    [[noreturn]] void stop_at(void* p, Said said) noexcept;
    void check(const void* p, const Finding& finding, Said said) noexcept;
    void check_all_home() const noexcept;
    [[noreturn]] void misused(const void* p, const Finding& finding,
                              const char* call = "deallocate") noexcept;
    void remember(void* p, const Finding& finding, std::size_t requested_bytes) noexcept;

    bool checked() const noexcept { return options_.checks != Checks::off; }

    PoolOptions options_;
    const std::size_t max_parked_bytes_;  // of one large block
    const blocks::OwnPlace place_;
    statistics::OwnedRecord<statistics::PoolRecord> record_;
    statistics::PoolCounters slots_{record_};
    pages::RecordArena records_;
    pages::PageHeap heap_;
    pages::LargeBlocks large_;
    blocks::BucketSet buckets_;
    // An array of them all among the records, or nullptr. Released when they are whole.
    std::atomic<blocks::BucketSet*> finer_ = nullptr;

    ListedPool listed_;
    // What the last look in the background found. Of the thread that looks.
    struct Calm {
        std::uint64_t calls = ~std::uint64_t{0};
        std::uint64_t since_ns = 0;
        bool is_trimmed = false;
    } calm_;
};

/// Trims all pools of the process and returns the bytes by which their capacities fell. Calls no
/// `on_event`: only the timeline gets the events. The calling thread may be in any call of any
/// pool, but holds no lock of one.
std::size_t trim_all_pools() noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
