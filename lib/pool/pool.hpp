#pragma once

#include <stdexcept>

#include <tensorpool/memory_pool.hpp>

#include "kinds/kind.hpp"

namespace tensorpool {

/// Throws std::invalid_argument if an option is invalid. The message names the option, its value
/// and what was expected.
void validate(const PoolOptions& options);

/// Returns `options` with the values that TENSORPOOL_* environment variables override. An invalid
/// value is reported on stderr with the variable's name, the expected value and the value used
/// instead.
PoolOptions options_from_environment(PoolOptions options);

/// Returns the value of TENSORPOOL_RETAIN_BACKGROUND; `off` if it is not set or invalid, which
/// `options_from_environment` reports.
BackgroundTrim background_trim_from_environment() noexcept;

}  // namespace tensorpool

namespace tensorpool::detail {
inline namespace abi_2 {

class Pool;

/// Marks a visit of a pool by the calling thread for the lifetime of this object. Visits nest.
class OwnVisit {
public:
    explicit OwnVisit(const Pool& pool) noexcept;
    ~OwnVisit();
    OwnVisit(const OwnVisit&) = delete;
    OwnVisit& operator=(const OwnVisit&) = delete;

    /// Returns how many visits of this pool by the calling thread are in progress.
    static unsigned count(const Pool& pool) noexcept;

private:
    const Pool& pool_;
    const OwnVisit* const outer_;
};

/// The list of all pools of the process. `visit` does not hold the list's lock while it calls its
/// function, so callbacks of the pool may run in a visit. There is one list per process.
/// Thread-safe.
class PoolList : public base::Lockable {
public:
    constexpr PoolList() noexcept = default;

    void enter(Pool& pool) noexcept;
    /// Removes a pool from the list. Waits until no other thread visits this pool. Does not wait
    /// for visits by the calling thread: exit() in a callback destroys static pools and never
    /// returns to the visit.
    void leave(Pool& pool) noexcept;
    template <class Function>
    void visit(Function function) noexcept {
        for (Pool* pool = first_visit(); pool != nullptr; pool = next_visit(*pool)) {
            const OwnVisit own(*pool);
            function(*pool);
        }
    }

    // For fork handlers.
    /// Forgets the visits of other threads, which do not exist in the child of a fork.
    /// REQUIRES: the lock is held.
    void forget_visits() noexcept;

private:
    Pool* first_visit() noexcept {
        const std::lock_guard guard(mutex_);
        return begin_visit(first_);
    }
    Pool* next_visit(Pool& pool) noexcept;
    Pool* begin_visit(Pool* pool) noexcept;
    bool try_leave(Pool& pool) noexcept;

    Pool* first_ = nullptr;  // under mutex_
    // Incremented when a visit has ended. Not part of the pool, which may be destroyed by then.
    std::atomic<std::uint32_t> ended_visits_ = 0;
};

inline PoolList& pool_list() noexcept {
    return base::the_only<PoolList>.get();
}

/// Decides when it is worth a look whether memory is so short that a pool should offer its free
/// memory to the system: whenever an eighth of it, at least 4 MiB, was freed since the last look,
/// and it is at least a 64th of the memory that the process may have. Thread-safe.
class OfferPace {
public:
    static constexpr std::size_t min_bytes = std::size_t{4} << 20;

    /// Returns whether a look is due with `bytes` free bytes that are not offered, in a process
    /// that may have `max_bytes`.
    bool is_due(std::size_t bytes, std::size_t max_bytes) noexcept {
        const std::size_t lowest = lowest_.load(std::memory_order_relaxed);
        if (bytes < lowest) lowest_.store(bytes, std::memory_order_relaxed);
        return bytes >= lowest + std::max(min_bytes, bytes / 8) && bytes >= max_bytes / 64;
    }
    void begin_again(std::size_t bytes) noexcept {
        lowest_.store(bytes, std::memory_order_relaxed);
    }

private:
    // The lowest number of bytes since the last look. Relaxed: if a thread's store is lost, a look
    // is made earlier or later.
    std::atomic<std::size_t> lowest_ = 0;
};

/// Returns whether the pool with this number serves the `malloc` of the process. Callers of malloc
/// touch their pages themselves.
bool serves_malloc(unsigned pool_number) noexcept;

/// The implementation of a MemoryPool. It sends each request along the pool's routes and each free
/// to the kind of its page (kinds/), and turns refusals and changes into errors and events. It
/// contains no feature. The object lies in memory mapped from the system, not from malloc. It is
/// part of every snapshot from the end of its construction until its destruction.
class Pool final {
public:
    using Request = kinds::Request;

    /// Makes a pool. Returns nullptr if the system has no memory for its records, or if no pool
    /// number is left.
    static Pool* make(const PoolOptions& options);
    /// Makes a pool with a reserved number. Returns nullptr if the system has no memory for its
    /// records.
    static Pool* make(const PoolOptions& options, unsigned number);
    static void destroy(Pool& pool) noexcept;

    kinds::PoolParts& parts() noexcept { return parts_; }
    const kinds::PoolParts& parts() const noexcept { return parts_; }

    /// Allocates a block. Returns nullptr on failure; then `path.refusal` holds the reason, and
    /// only the failure is counted.
    void* allocate(Request request, pages::SlowPath& path) noexcept;
    /// Allocates a block. Throws AllocationError on failure.
    void* allocate_or_throw(const Request& request);
    /// Allocates a block filled with zeros; otherwise like `allocate`.
    void* allocate_zeroed(std::size_t bytes, pages::SlowPath& path) noexcept;
    /// Resizes the block at `p`, which may move. Throws AllocationError, and leaves the block as it
    /// is, on failure. REQUIRES: the block has the default alignment, and `new_bytes` is not 0.
    void* reallocate(void* p, std::size_t old_bytes, std::size_t new_bytes);
    /// See kinds::resize_without_copy.
    void* resize_pages(void* p, std::size_t bytes) noexcept;
    /// Frees a block, or reports a misuse.
    void deallocate(void* p, const FreedAs& freed = {}) noexcept;
    /// Describes a request that was refused.
    AllocationError error_for(std::size_t bytes, const pages::SlowPath& path) const noexcept;

    bool reserve(std::size_t capacity, pages::SlowPath& path) noexcept;
    std::size_t trim() noexcept;
    void set_max_capacity(std::size_t bytes) noexcept;
    /// Gives free memory back that is charged to `budget` or to one below it, if the pool has any.
    void give_free_memory(const BudgetNode& budget, std::size_t bytes) noexcept;
    /// From now on, serves requests with an alignment of at most `base::finer_alignment` from finer
    /// sizes (base/block_sizes.hpp), unless calls are checked or memory is short. The pool numbers
    /// that follow this pool's must be reserved for it. At most one thread may call it at a time.
    void offer_finer_sizes() noexcept;

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
    /// Ends a slow path: reports its changes, wakes the background trimmer, and offers free memory
    /// if memory is short.
    void end_slow_path(const pages::Changes& changes) noexcept;

    std::size_t capacity() const noexcept { return parts_.heap.capacity().bytes(); }

    // The list of all pools owns these, under its lock.
    Pool* next = nullptr;
    Pool* previous = nullptr;
    unsigned visits = 0;  // in progress: the pool stays until they end

private:
    Pool(PoolOptions&& options, unsigned number,
         statistics::OwnedRecord<statistics::PoolRecord>&& record) noexcept;
    ~Pool();

    const kinds::Route& route_of(const Request& request) const noexcept;
    void* try_under_pressure(const kinds::Route& route, const Request& request,
                             pages::SlowPath& path) noexcept;
    void count_failure(std::size_t bytes, const pages::Refusal& refusal) noexcept;
    void report(PoolEvent::Kind kind, EntryKind entry, std::size_t bytes,
                LimitKind limit_kind = LimitKind::none, const char* limit = "") noexcept;

    kinds::PoolParts parts_;
    OfferPace offer_pace_;
    // What the trimmer's last pass found. Accessed by the trimmer thread only.
    struct Idle {
        std::uint64_t calls = ~std::uint64_t{0};
        std::uint64_t since_ns = 0;
        bool is_trimmed = false;
    } idle_;
};

/// Returns the implementation of a pool that has none now: sets it up if it is the global one, and
/// returns nullptr if that fails. Any other was destroyed, which stops the program with a report
/// that names `block`.
Pool* find_pool(const MemoryPool& pool, const void* block) noexcept;
/// Like `find_pool`; throws AllocationError if the set-up fails.
Pool& require_pool(const MemoryPool& pool, const void* block);

struct PoolAccess {
    /// Returns the implementation of a pool, which it sets up if it is the global one.
    static Pool& of(const MemoryPool& pool) { return pool.pool(); }
    /// Returns nullptr if the set-up fails.
    static Pool* find(const MemoryPool& pool) noexcept {
        Pool* const known = pool.pool_if_set_up();
        return known != nullptr ? known : find_pool(pool, nullptr);
    }
};

/// From now on, the ladder before a refusal has the rungs of pools, and scopes of budgets find the
/// caches of threads.
void watch_budgets() noexcept;

/// Trims all pools of the process. Returns the bytes by which their capacities fell. Does not call
/// `on_event`: the events go to the timeline only. The calling thread may be inside any call of any
/// pool, but must not hold a lock of one.
std::size_t trim_all_pools() noexcept;

/// Gives free memory of pools back that is charged to `budget` or to one below it, until `bytes`
/// bytes were given or there is no more. Returns the bytes by which the charge fell. Does not call
/// `on_event`. The caller holds no lock.
std::size_t give_free_memory_of_pools(const BudgetNode& budget, std::size_t bytes) noexcept;

/// From now on, an access to memory that pools protect stops the program with a report. Installs
/// handlers for SIGSEGV and SIGBUS (platform/platform.hpp).
void stop_at_faults() noexcept;

/// Writes the report of an access to `address` into `text`, of which at most `bytes` bytes
/// including the final null are used. Returns its length; 0 if no pool protects the address. May be
/// called in a signal handler.
std::size_t describe_fault(const void* address, char* text, std::size_t bytes) noexcept;

}  // namespace abi_2
}  // namespace tensorpool::detail
