#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include <tensorpool/detail/allocated_by.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/pool_options.hpp>
#include <tensorpool/statistics.hpp>

#include "base/canary.hpp"
#include "base/checks.hpp"
#include "blocks/bucket_set.hpp"
#include "blocks/thread_caches.hpp"
#include "blocks/thread_registry.hpp"
#include "pages/heap/page_heap.hpp"
#include "pages/large_blocks.hpp"
#include "pages/record_arena.hpp"
#include "platform/tools/memory_tools.hpp"
#include "pool/background_trimmer.hpp"
#include "pool/offer_pace.hpp"
#include "pool/pool_list.hpp"
#include "statistics/budget/scope_budget.hpp"
#include "statistics/misuse/misuse.hpp"
#include "statistics/segment/owned_record.hpp"
#include "statistics/segment/pool_counters.hpp"
#include "statistics/sums/snapshot_sources.hpp"

namespace tensorpool::statistics {
struct ProfiledBlock;
}  // namespace tensorpool::statistics

namespace tensorpool::detail {
inline namespace abi_2 {

/// Returns the bucket for a request, or `bucket_count` if whole pages serve it.
inline unsigned bucket_for(std::size_t bytes, std::size_t alignment) noexcept {
    // Up to this alignment, a block of the bucket of max(bytes, alignment) is aligned to its size:
    // blocks below 4 KiB lie without gaps in spans that begin at a page.
    constexpr std::size_t max_bucket_alignment = 2048;
    if (alignment > smallest_block_bytes) {
        bytes = std::max(bytes, alignment);
        if (bytes > max_bucket_alignment) return bucket_count;
    }
    return std::min(bucket_of(bytes), bucket_count);
}

/// Returns whether the pool with this number serves the `malloc` of the process. Callers of malloc
/// touch their pages themselves.
bool serves_malloc(unsigned pool_number) noexcept;

/// The implementation of a MemoryPool: connects the page heap, buckets and counters of one pool,
/// and turns their refusals into errors and events. The object lies in memory mapped from the
/// system, not from malloc. It is part of every snapshot from the end of its construction until its
/// destruction.
class Pool final : private statistics::SnapshotSource {
public:
    /// Makes a pool. Returns nullptr if the system has no memory for its records, or if no pool
    /// number is left.
    static Pool* make(const PoolOptions& options);
    /// Makes a pool with a reserved number. Returns nullptr if the system has no memory for its
    /// records.
    static Pool* make(const PoolOptions& options, unsigned number);
    static void destroy(Pool& pool) noexcept;

    /// Whether the caller or the pool touches the fresh pages of a block of whole pages first.
    enum class FirstTouch : bool { by_caller, by_pool };
    /// Allocates a block that the inline path could not serve: a block of whole pages, any block of
    /// a pool with checks, or one of which the thread's loaded magazine has none. Throws
    /// AllocationError on failure.
    void* allocate_rest(std::size_t bytes) {
        if (bytes > largest_block_bytes) return allocate_pages(bytes);
        if (checked()) {
            if (void* const block = take_parked_block(bytes)) return block;
        }
        return allocate_or_throw(bytes, smallest_block_bytes);
    }
    /// Returns a cached free block of whole pages of exactly this size, or nullptr if there is
    /// none. `bytes` must be more than the largest bucket's block size.
    void* take_free_pages(std::size_t bytes) noexcept;
    /// From now on, serves requests with an alignment of at most `base::finer_alignment` from finer
    /// sizes (base/block_sizes.hpp), unless calls are checked or memory is short. The pool numbers
    /// that follow this pool's must be reserved for it. At most one thread may call it at a time.
    void offer_finer_sizes() noexcept;
    /// Allocates a block. Returns nullptr on failure; then `path.refusal` holds the reason, and
    /// only the failure is counted.
    void* allocate(std::size_t bytes, std::size_t alignment, pages::SlowPath& path,
                   FirstTouch first_touch = FirstTouch::by_caller) noexcept;
    /// Allocates a block of its own for a `malloc` of 0 bytes, none of which may be accessed.
    /// Returns nullptr on failure, and if the pool is not hardened.
    void* allocate_nothing(std::size_t alignment, pages::SlowPath& path) noexcept;
    /// Allocates a block. Throws AllocationError on failure.
    void* allocate_or_throw(std::size_t bytes, std::size_t alignment,
                            FirstTouch first_touch = FirstTouch::by_caller);
    void* allocate_zeroed(std::size_t bytes, pages::SlowPath& path) noexcept;
    void* allocate_zeroed(std::size_t bytes);
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes);
    /// Grows the block in use at `p` to at least `bytes` bytes without copying its content. Returns
    /// the address of the block, which changes if its pages were moved. Returns nullptr and leaves
    /// the block unchanged if it cannot grow, is not a block of whole pages of this pool, or holds
    /// `bytes` already.
    void* lengthen(void* p, std::size_t bytes) noexcept;
    /// Returns whether a resize to `bytes` bytes must move the block in use at `p`, so that it is
    /// charged like a new one: a scope of the calling thread charges another budget than the one
    /// that the block is charged to. Takes no lock.
    bool must_charge(const void* p, std::size_t bytes) noexcept;
    [[noreturn]] void fail(std::size_t bytes, const pages::SlowPath& path) const;
    AllocationError error_for(std::size_t bytes, const pages::SlowPath& path) const noexcept;

    /// Marks a block of whole pages in use as one whose free is noted by a server
    /// (block_server.hpp). The caller holds the block.
    void note_free_of(void* p) noexcept;
    /// Ends what `note_free_of` began. REQUIRES: the lock of `block_servers` is held.
    void forget_free_of(void* p) noexcept;
    /// Lends a span of at least `bytes` bytes to `borrower`. It leaves the capacity, but not the
    /// commit budget. If free memory does not suffice, all of it is given back before the pool
    /// grows. Returns nullptr, with the reason in `path`, if it cannot.
    pages::Span* lend(std::size_t bytes, std::size_t alignment, const pages::ServedMemory& borrower,
                      pages::SlowPath& path) noexcept;
    /// Gives the free memory of whole pages back, except for what `reserve` prepared.
    void give_back_free() noexcept;
    /// Takes a lent span back, as free memory. Afterwards, no look-up reaches the borrower.
    void take_back(pages::Span& span) noexcept;
    void* address_of(const pages::Span& span) const noexcept { return large_.address_of(span); }

    void deallocate(void* p) noexcept;
    void deallocate(void* p, std::size_t bytes) noexcept;
    void deallocate(void* p, std::size_t bytes, std::size_t alignment) noexcept;
    /// Frees a block. A hardened pool checks what the caller states.
    void deallocate(void* p, const FreedAs& freed) noexcept {
        is_hardened() ? deallocate_hardened(p, freed) : deallocate(p);
    }
    /// See `record_allocated_by`.
    void record_allocated_by(void* block, AllocatedBy by) noexcept;

    bool reserve(std::size_t capacity, pages::SlowPath& path) noexcept;
    /// Gives free memory back that is charged to `budget` or to one below it, if the pool has any.
    void give_free_memory(const BudgetNode& budget, std::size_t bytes) noexcept;
    /// Returns the number of the budget that is charged for what the calling thread allocates now:
    /// the pool's, or that of the thread's scope; 0 for none.
    std::uint64_t charged_budget() const noexcept;
    std::size_t trim() noexcept;
    void set_max_capacity(std::size_t bytes) noexcept;
    std::size_t max_capacity() const noexcept;
    bool owns(const void* p) noexcept;
    std::size_t usable_size(const void* p) noexcept;
    /// Returns what `usable_size` does, and reports a pointer that is no block in use as misuse.
    std::size_t checked_usable_size(const void* p) noexcept;

    PoolStatistics statistics() const noexcept;
    const statistics::PoolCounters& counters() const noexcept { return counters_; }
    std::size_t capacity() const noexcept override { return heap_.capacity(); }
    const std::string& name() const noexcept { return options_.name; }
    /// The index of this pool's caches in the threads' tables, or the index of the entry that is
    /// always empty if the pool has no caches.
    unsigned table_number() const noexcept;

    /// What the background trimmer determines once per pass, for all pools.
    struct Moment {
        std::uint64_t now_ns = 0;
        bool is_memory_short = false;
        std::size_t available_bytes = SIZE_MAX;
    };
    /// Performs the background trimmer's work for this pool, if the pool's options enable it. At
    /// the end of a period, it does what a slow path would do. After a period without any call, it
    /// does what `trim` does, but keeps what `reserve` prepared. Returns the nanoseconds until the
    /// next pass, at least 10 ms, or `platform::no_timeout` if nothing more can be returned before
    /// the next call. At most one thread may call it at a time.
    std::uint64_t look_in_background(Moment moment, pages::Changes& changes) noexcept;
    /// Reports growth and returned memory to the timeline and to `on_event`. The caller holds no
    /// lock.
    void report(const pages::Changes& changes) noexcept;
    ListedPool& listed() noexcept { return listed_; }

private:
    Pool(PoolOptions&& options, unsigned number,
         statistics::OwnedRecord<statistics::PoolRecord>&& record) noexcept;
    ~Pool();

    /// The size that the caller of a sized free states.
    struct StatedSize {
        static constexpr unsigned nothing = ~0U;
        std::size_t bytes = 0;
        unsigned bucket = nothing;  // the bucket for that size, or `bucket_count`

        bool agrees(unsigned with_bucket) const noexcept {
            return bucket == with_bucket || bucket == nothing;
        }
    };

    // pool.cpp
    bool has_finer_sizes() const noexcept {
        return finer_.load(std::memory_order_acquire) != nullptr;
    }
    blocks::Cache* attach(blocks::BucketSet& set) noexcept;
    void* try_once(std::size_t bytes, std::size_t alignment, pages::SlowPath& path) noexcept;
    [[gnu::noinline]] void* try_under_pressure(std::size_t bytes, std::size_t alignment,
                                               pages::SlowPath& path) noexcept;
    void* allocate_block(blocks::BucketSet& set, unsigned bucket, std::size_t bytes,
                         std::size_t alignment, pages::SlowPath& path) noexcept;
    void* allocate_finest(std::size_t bytes, std::size_t alignment, pages::SlowPath& path) noexcept;
    blocks::BucketSet& series(unsigned number) noexcept {
        return number == 0 ? buckets_ : finer_.load(std::memory_order_acquire)[number - 1];
    }
    void record_end_if_recording(void* p) noexcept;
    void record_end(void* p) noexcept;
    [[gnu::noinline]] void free_unchecked_block(blocks::BucketSet& set, unsigned bucket,
                                                void* p) noexcept;
    void free_block(blocks::BucketSet& set, unsigned bucket, void* p,
                    pages::Changes& changes) noexcept;

    // pool_marked.cpp: blocks with marks, such as those that a scope charges to its budget
    /// Whether a scope of the calling thread charges what it allocates here.
    bool is_in_scope() const noexcept {
        return statistics::scope_budget != nullptr && heap_.options().budget == nullptr;
    }
    [[gnu::noinline]] void* allocate_charged(unsigned bucket, std::size_t bytes,
                                             std::size_t alignment, pages::SlowPath& path) noexcept;
    void* allocate_charged_direct(unsigned bucket, std::size_t bytes,
                                  pages::SlowPath& path) noexcept;
    void* take_marked(unsigned bucket, std::size_t bytes, blocks::BucketSet::CountAs count_as,
                      pages::SlowPath& path) noexcept;
    [[gnu::noinline]] void* allocate_charged_pages(blocks::Cache* cache, std::size_t bytes,
                                                   std::size_t alignment,
                                                   pages::SlowPath& path) noexcept;
    void mark_large(pages::Span& span, base::BlockMark& mark) noexcept;
    [[gnu::noinline]] void free_marked_large(pages::Span& span) noexcept;
    void free_marked(void* p, pages::PageEntry entry, StatedSize stated) noexcept;
    base::BlockMark* charge_of(const void* p) noexcept;

    // pool_large.cpp: blocks of whole pages
    void* allocate_pages(std::size_t bytes);
    [[gnu::noinline]] void* allocate_other_pages(std::size_t bytes);
    // The first takes the block that the thread freed last, if its size fits; the second takes
    // another block of the thread's, or one from the cache that all threads share.
    void* take_last_pages(std::size_t bytes) noexcept;
    [[gnu::noinline]] void* take_other_pages(std::size_t bytes) noexcept;
    void* allocate_large(std::size_t bytes, std::size_t alignment, pages::SlowPath& path) noexcept;
    void* allocate_whole_pages(blocks::Cache* cache, std::size_t bytes, std::size_t alignment,
                               pages::SlowPath& path) noexcept;
    void prefault(void* block, std::size_t bytes, const pages::Changes& changes) noexcept;
    enum class Source : std::uint8_t { cache, extents, system };
    void* hand_out(blocks::Cache* cache, pages::Span& span, std::size_t bytes,
                   Source source) noexcept;
    void* hand_out_parked(blocks::Cache& cache, pages::Span& span, std::size_t bytes) noexcept;
    void free_pages(void* p) noexcept;
    void free_large(pages::Span& span) noexcept;
    void free_large_slow(pages::Span& span) noexcept;
    // Separate functions, so that `free_pages` and `free_large` save no registers for them.
    [[gnu::noinline]] void free_pages_slow(void* p) noexcept;
    [[gnu::noinline]] void look_after_free(bool is_time) noexcept;
    void* extend(pages::Span& span, std::size_t bytes, pages::SlowPath& path) noexcept;
    void* move(pages::Span& span, std::size_t bytes, pages::SlowPath& path) noexcept;
    template <class Function>
    void count_large(blocks::Cache* cache, Function function) noexcept;
    void count_guarded_allocation(std::size_t requested, std::size_t taken) noexcept;
    void count_guarded_deallocation(std::size_t taken) noexcept;
    void count_large_request_as(std::size_t bytes, std::size_t counted_bytes) noexcept;
    void count_large_free(std::size_t bytes) noexcept;
    void count_hardened_free(unsigned bucket) noexcept;
    void hold(blocks::Cache* cache, std::size_t bytes) noexcept;
    void let_go(blocks::Cache* cache, std::size_t bytes) noexcept;

    // pool_guarded.cpp: guarded blocks
    void set_up_guards() noexcept;
    void* guard_if_due(blocks::Cache& cache, std::size_t bytes, std::size_t alignment) noexcept;
    void* allocate_guarded(std::size_t bytes, std::size_t alignment) noexcept;
    /// Frees a guarded block of this pool. Returns false, and does nothing, if `p` lies in none.
    bool free_guarded(void* p, std::size_t stated_bytes = SIZE_MAX) noexcept;
    void check_guarded(void* p, const pages::GuardedBlock& block,
                       std::size_t stated_bytes) noexcept;

    // pool_profile.cpp: the heap profile
    /// What is decided when the countdown of a thread's cache does not suffice for a request.
    struct Sampled {
        void* block = nullptr;  // a guarded block that serves it
        double mean = 0;  // if the heap profile samples it, at this mean distance; otherwise 0
        std::uint64_t begun_ns = 0;  // when that was decided
    };
    bool is_profiled() const noexcept;
    Sampled sample(blocks::Cache& cache, std::size_t bytes, std::size_t alignment) noexcept;
    double take_sample(blocks::Cache& cache, std::size_t bytes) noexcept;
    void owe_sample(blocks::Cache& cache, std::size_t bytes, double mean) noexcept;
    statistics::ProfiledBlock* begin_profile(blocks::Cache& cache, const void* p, std::size_t bytes,
                                             const Sampled& sampled) noexcept;
    void profile_large(blocks::Cache& cache, void* p, std::size_t bytes,
                       const Sampled& sampled) noexcept;
    void profile_marked(blocks::Cache& cache, pages::BlockStates::Mark& mark, void* p,
                        std::size_t bytes, const Sampled& sampled) noexcept;
    void profile_resized(pages::Span& span, std::size_t bytes) noexcept;
    void* allocate_sampled(blocks::Cache& cache, std::size_t bytes, std::size_t alignment,
                           pages::SlowPath& path) noexcept;

    // pool_hardened.cpp
    void harden() noexcept;
    void* try_hardened(std::size_t bytes, std::size_t alignment, pages::SlowPath& path) noexcept;
    void* allocate_hardened_pages(std::size_t bytes, std::size_t alignment,
                                  pages::SlowPath& path) noexcept;
    void begin_hardened_use(void* p, std::size_t bytes, unsigned bucket,
                            pages::BlockOrigin origin) noexcept;
    [[noreturn]] void stop_at_wrong_block(const char* block, std::size_t bytes) noexcept;
    void check_still_zero(char* block, std::size_t bytes, std::size_t usable) noexcept;
    bool check_canary(const char* block, std::size_t requested, std::size_t usable) noexcept;
    [[noreturn]] void stop_at_wrong_record(const char* block, std::size_t requested,
                                           std::size_t usable) noexcept;
    void report_overrun(const char* block, std::size_t requested, std::size_t usable,
                        std::size_t at) noexcept;
    void quarantine(blocks::Quarantine::Block block) noexcept;
    void empty_quarantine(pages::Changes& changes) noexcept;
    void release(blocks::Quarantine::Block* blocks, unsigned count,
                 pages::Changes& changes) noexcept;
    void release_pages(pages::Span& span, pages::Changes& changes) noexcept;

    // pool_served.cpp: blocks of plans, and blocks whose frees a server notes
    void* allocate_served(std::size_t bytes, std::size_t alignment, pages::SlowPath& path,
                          FirstTouch first_touch) noexcept;
    /// Frees a block of a plan and returns true, or notes the free of a block of the pool.
    bool free_served(void* p) noexcept;

    // pool_memory.cpp: free memory, events
    bool gather(pages::Changes& changes) noexcept;
    bool empty_caches(blocks::Bucket::Magazines magazines, pages::Changes& changes) noexcept;
    bool keep_to_retention(pages::Changes& changes) noexcept;
    std::size_t unoffered_bytes() const noexcept;
    [[gnu::noinline]] void offer_if_short() noexcept;
    void offer_free(pages::Changes& changes) noexcept;
    AllocationFailure describe(std::size_t bytes, const pages::Refusal& refusal) const noexcept;
    void count_failure(std::size_t bytes, const pages::Refusal& refusal) noexcept;
    void report(PoolEvent::Kind kind, std::size_t bytes, const char* limit) noexcept;
    void add_to(Snapshot& snapshot) const override;
    Identity identify() const noexcept override;
    std::uint64_t id() const noexcept;

    // pool_marks.cpp: what memory tools see of this pool
    static blocks::OwnPlace place_of(unsigned number) noexcept;
    // Pools that guard blocks write into free ones and behind the requested bytes themselves.
    bool is_marked() const noexcept {
        return platform::has_memory_tool() && options_.checks != Checks::sampled &&
               options_.checks != Checks::hardened;
    }
    static void hide_caches_from_tools() noexcept;
    void mark_new(void* block, std::size_t bytes) noexcept;
    /// Returns false if the program goes on after a misuse. The block is then left as it is.
    bool check_and_mark_freed(void* p, StatedSize stated) noexcept;

    // pool_background.cpp: work for the background trimmer
    void end_slow_path(const pages::Changes& changes) noexcept;
    bool may_skip_end() const noexcept { return !background_trimmer().is_asleep(); }
    bool has_much_to_trim() const noexcept;

    // pool_checks.cpp: classification of pointers, checks
    struct Finding {
        enum class What { block, interior, freed, foreign } what = What::foreign;
        void* block = nullptr;  // the beginning of the block, for `block` and `interior`
        unsigned bucket = detail::bucket_count;  // `bucket_count` for blocks of whole pages
        std::size_t usable = 0;
        std::size_t requested = 0;
    };
    Finding find(const void* p) noexcept;
    Finding find_pages(const void* p) noexcept;
    Finding find_served(const void* p) noexcept;
    Finding find_guarded(const void* p) noexcept;
    Finding find_marked(const void* p) noexcept;
    Finding find_in(blocks::BucketSet& set, unsigned number, const void* p) noexcept;
    // For blocks of whole pages the look-up yields everything that a check needs, so every free is
    // checked.
    // Returns nullptr for a misuse after which the program goes on.
    pages::Span* large_span_of(void* p) noexcept {
        pages::Span* const span = large_.find_in_use(p);
        if (span == nullptr) [[unlikely]]
            refuse(p);
        return span;
    }
    void deallocate_hardened(void* p, const FreedAs& freed) noexcept;
    void check_stated(const void* p, const FreedAs& freed, const blocks::Bucket::EndedUse& use,
                      std::size_t usable) noexcept;
    void free_hardened(void* p, pages::PageEntry entry, const FreedAs& freed) noexcept;
    void free_hardened_pages(void* p, const FreedAs& freed) noexcept;
    void* take_parked_block(std::size_t bytes) noexcept;
    void deallocate_checked(void* p, StatedSize stated) noexcept;
    void free_checked_pages(void* p, StatedSize stated) noexcept;
    void free_block(blocks::BucketSet& set, unsigned bucket, void* p) noexcept;
    std::size_t max_requested(StatedSize stated) const noexcept;
    // These return if the program goes on after a misuse. The block is then left as it is.
    void refuse(void* p) noexcept;
    void refuse(void* p, StatedSize stated) noexcept;
    bool is_refused(const void* p, const Finding& finding, StatedSize stated) noexcept;
    std::size_t check_old_bytes(const void* p, const Finding& finding,
                                std::size_t stated_bytes) const noexcept;
    void check_no_leaks() const noexcept;
    void misused(const void* p, const Finding& finding, const char* call = "deallocate") noexcept;
    statistics::Misuse misuse_of(statistics::MisuseKind kind, const void* p,
                                 const Finding& finding) const noexcept;
    void remember(void* p, const Finding& finding, std::size_t requested_bytes) noexcept;

    /// Returns whether blocks of this memory of a plan may be freed through this pool.
    bool may_serve(pages::PageEntry entry) const noexcept {
        return is_global() && entry.pool_number() == heap_.pool_number();
    }
    bool is_global() const noexcept { return heap_.pool_number() == GlobalPool::number; }
    bool is_hardened() const noexcept { return options_.checks == Checks::hardened; }
    /// Whether some blocks are guarded.
    bool is_sampled() const noexcept { return options_.checks == Checks::sampled; }
    bool checked() const noexcept { return base::checks_calls(options_.checks); }

    PoolOptions options_;
    const std::size_t max_parked_bytes_;  // the largest large block that a thread keeps
    const blocks::OwnPlace place_;
    statistics::OwnedRecord<statistics::PoolRecord> record_;
    statistics::PoolCounters counters_{record_};
    pages::RecordArena records_;
    pages::PageHeap heap_;
    pages::LargeBlocks large_;
    blocks::BucketSet buckets_;
    base::Canary canary_;
    // Whether a block was ever marked. Relaxed: only a pool that is destroyed reads it.
    std::atomic<bool> has_marks_ = false;
    // The array of all finer series, among the records, or nullptr. Stored with release when all of
    // them are constructed.
    std::atomic<blocks::BucketSet*> finer_ = nullptr;

    OfferPace offer_pace_;
    ListedPool listed_;
    // What the trimmer's last pass found. Accessed by the trimmer thread only.
    struct Idle {
        std::uint64_t calls = ~std::uint64_t{0};
        std::uint64_t since_ns = 0;
        bool is_trimmed = false;
    } idle_;
};

struct PoolAccess {
    /// Returns the implementation of a pool, which it sets up if it is the global one.
    static Pool& of(const MemoryPool& pool) { return pool.pool(); }
};

/// Returns the implementation of a pool that has none now: sets it up if it is the global one. Any
/// other was destroyed, which stops the program with a report that names `block`.
Pool& require_pool(const MemoryPool& pool, const void* block);

/// From now on, budgets find the free memory of pools, and their scopes the caches of threads.
void watch_budgets() noexcept;

/// Trims all pools of the process. Returns the bytes by which their capacities fell. Does not call
/// `on_event`: the events go to the timeline only. The calling thread may be inside any call of any
/// pool, but must not hold a lock of one.
std::size_t trim_all_pools() noexcept;

/// Gives free memory of pools back that is charged to `budget` or to one below it, until `bytes`
/// bytes were given or there is no more. Returns the bytes by which the charge fell. Does not call
/// `on_event`. The caller holds no lock.
std::size_t give_free_memory_of_pools(const BudgetNode& budget, std::size_t bytes) noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
