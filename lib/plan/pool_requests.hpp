#pragma once

#include <unordered_map>

#include "plan/follower.hpp"
#include "plan/learned_plan.hpp"
#include "plan/owned_planned_record.hpp"
#include "pool/pool.hpp"

namespace tensorpool::planned {

/// Records the requests and frees of iterations until enough consecutive ones made the same
/// requests. Not thread-safe.
class Learner {
public:
    /// Identifies a recorded request, so that its free can be recorded too.
    struct Ticket {
        std::uint32_t iteration = 0;  // 0: the request was not recorded
        std::uint32_t request = 0;
    };

    /// Learning takes `iterations` consecutive iterations, at least 1, with the same requests.
    /// Iterations of more than `max_count` requests are discarded.
    explicit Learner(unsigned iterations, std::size_t max_count = max_requests) noexcept
        : wanted_(iterations), max_count_(max_count) {}

    void begin_iteration() noexcept;
    bool is_noting() const noexcept { return noting_; }
    /// Records a request. Requires: an iteration is being recorded, and `bytes` is above 0. Throws
    /// std::bad_alloc.
    Ticket note(std::size_t bytes, std::size_t alignment, std::size_t pool_bytes);
    /// Records the free of a request. Ignores requests of earlier iterations.
    void note_end(Ticket ticket) noexcept;
    /// Ends the iteration. Returns true if enough was learned for a plan.
    bool end_iteration();

    /// Returns the requests learned so far, each with its longest lifetime among the identical
    /// iterations.
    const std::vector<Request>& learned() const noexcept { return learned_; }
    /// Stops recording the current iteration, if any, and discards everything learned.
    void forget() noexcept;

private:
    void merge() noexcept;

    unsigned wanted_;
    std::size_t max_count_;
    unsigned identical_ = 0;  // number of iterations merged in `learned_`
    bool noting_ = false;
    std::uint32_t iteration_ = 0;
    std::vector<Request> learned_;
    std::vector<Request> noted_;
};

/// The requests of an arena that the pool serves. Counts them, records them while the arena learns,
/// and remembers their blocks until they are freed. Any thread, except where stated.
class PoolRequests {
public:
    using Answer = Follower::Answer;

    /// All of these outlive the object. `first_owner` identifies the thread that counts its frees
    /// with plain stores.
    PoolRequests(std::mutex& mutex, statistics::PlannedTotals& totals,
                 const std::atomic<const void*>& first_owner, unsigned learn_iterations) noexcept
        : mutex_(mutex), totals_(totals), first_owner_(first_owner), learner_(learn_iterations) {}

    /// Begins to record an iteration. For the arena's owner.
    void begin_iteration() noexcept;
    /// Ends the recorded iteration, if any. Returns whether enough was learned for a plan. Throws
    /// std::bad_alloc. For the arena's owner.
    bool end_iteration();
    /// For the arena's owner, between iterations.
    const std::vector<Request>& learned() const noexcept { return learner_.learned(); }
    void forget_learned() noexcept;

    /// Adds a request and its block, which the arena's callers free. Throws std::bad_alloc.
    void add(void* block, std::size_t bytes, std::size_t alignment, std::size_t pool_bytes,
             Answer answer);
    /// Adds a request and its block, whose free `pool` notes. Without memory for a record, the
    /// block is the pool's alone.
    void add_noted(detail::Pool& pool, void* block, std::size_t bytes, std::size_t alignment,
                   Answer answer) noexcept;
    /// Notes the free of a block. Returns false if there is none at `p`.
    bool note_free(void* p) noexcept;
    /// Lets the pool forget that frees of blocks are noted. REQUIRES: the lock of `block_servers`
    /// is held.
    void forget_noted(detail::Pool& pool) noexcept;
    /// Returns all blocks to their pool. For the end of the arena.
    void return_all(MemoryPool& pool) noexcept;

private:
    struct Block {
        std::uint64_t bytes;     // usable size of the pool's block
        Learner::Ticket ticket;  // the learner's record of the request
        bool is_noted;           // freed by callers of the pool, which notes the free
    };

    void remember(void* block, std::size_t bytes, std::size_t alignment, std::size_t pool_bytes,
                  bool is_noted);
    void count(Answer answer, std::size_t pool_bytes) noexcept;
    void count_freed(std::uint64_t bytes) noexcept;

    std::mutex& mutex_;
    statistics::PlannedTotals& totals_;
    const std::atomic<const void*>& first_owner_;
    std::unordered_map<void*, Block> blocks_;  // that callers hold
    Learner learner_;
};

}  // namespace tensorpool::planned
