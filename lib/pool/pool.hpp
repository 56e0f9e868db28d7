#pragma once

#include <cstddef>
#include <cstdint>

#include <tensorpool/detail/allocated_by.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics.hpp>

#include "events/snapshot_sources.hpp"
#include "kinds/pool_parts.hpp"
#include "kinds/route.hpp"
#include "pool/offer_pace.hpp"
#include "pool/pool_list.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {

/// Returns whether the pool with this number serves the `malloc` of the process. Callers of malloc
/// touch their pages themselves.
bool serves_malloc(unsigned pool_number) noexcept;

/// The implementation of a MemoryPool. It sends each request along the pool's routes and each free
/// to the kind of its page (kinds/), and turns refusals and changes into errors and events. It
/// contains no feature. The object lies in memory mapped from the system, not from malloc. It is
/// part of every snapshot from the end of its construction until its destruction.
class Pool final : private events::SnapshotSource {
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
    /// See kinds::lengthen.
    void* lengthen(void* p, std::size_t bytes) noexcept;
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

    std::size_t capacity() const noexcept override { return parts_.heap.capacity().bytes(); }
    ListedPool& listed() noexcept { return listed_; }

private:
    Pool(PoolOptions&& options, unsigned number,
         statistics::OwnedRecord<statistics::PoolRecord>&& record) noexcept;
    ~Pool();

    const kinds::Route& route_of(const Request& request) const noexcept;
    void* try_under_pressure(const kinds::Route& route, const Request& request,
                             pages::SlowPath& path) noexcept;
    void count_failure(std::size_t bytes, const pages::Refusal& refusal) noexcept;
    void report(PoolEvent::Kind kind, std::size_t bytes, const char* limit) noexcept;
    void add_to(Snapshot& snapshot) const override;
    Identity identify() const noexcept override;

    kinds::PoolParts parts_;
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

}  // namespace abi_2
}  // namespace tensorpool::detail
