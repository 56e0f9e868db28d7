#pragma once

#include <exception>
#include <unordered_map>

#include "kinds/kinds.hpp"
#include "kinds/reports.hpp"
#include "plan/follower.hpp"
#include "plan/learned_plan.hpp"
#include "plan/owned_planned_record.hpp"
#include "pool/pool.hpp"

namespace tensorpool::planned {

inline Request request_of(std::size_t bytes, std::size_t alignment,
                          std::size_t pool_bytes) noexcept {
    const std::uint64_t limited = std::min<std::uint64_t>(bytes, max_request_bytes);
    return {.bytes = base::align_up(limited, plan_granule_bytes),
            .pool_bytes = pool_bytes,
            .alignment = static_cast<std::uint32_t>(
                std::clamp<std::uint64_t>(alignment, plan_granule_bytes, max_request_alignment)),
            .end = Request::outlives};
}

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

    void begin_iteration() noexcept {
        noted_.clear();
        noting_ = true;
        iteration_ = std::max(iteration_ + 1, 1u);
    }
    bool is_noting() const noexcept { return noting_; }
    /// Records a request. Requires: an iteration is being recorded, and `bytes` is above 0. Throws
    /// std::bad_alloc.
    // One request above the limit is recorded to mark the iteration as too long. Recording more
    // would only take memory.
    Ticket note(std::size_t bytes, std::size_t alignment, std::size_t pool_bytes) {
        if (noted_.size() > max_count_) return {};
        noted_.push_back(request_of(bytes, alignment, pool_bytes));
        if (bytes > max_request_bytes || alignment > max_request_alignment) return {};
        return {iteration_, static_cast<std::uint32_t>(noted_.size() - 1)};
    }
    /// Records the free of a request. Ignores requests of earlier iterations.
    void note_end(Ticket ticket) noexcept {
        if (!noting_ || ticket.iteration != iteration_) return;
        noted_[ticket.request].end = static_cast<std::uint32_t>(noted_.size());
    }
    /// Ends the iteration. Returns true if enough was learned for a plan.
    bool end_iteration() {
        noting_ = false;
        if (noted_.empty() || noted_.size() > max_count_) return false;
        if (identical_ != 0 && same_requests(learned_, noted_)) {
            merge();
        } else {
            std::swap(learned_, noted_);
            identical_ = 0;
        }
        return ++identical_ >= wanted_;
    }

    /// Returns the requests learned so far, each with its longest lifetime among the identical
    /// iterations.
    const std::vector<Request>& learned() const noexcept { return learned_; }
    /// Stops recording the current iteration, if any, and discards everything learned.
    void forget() noexcept {
        noting_ = false;
        identical_ = 0;
        learned_.clear();
        noted_.clear();
    }

private:
    // A buffer that outlived one of the iterations counts as outliving: `outlives` is the largest
    // end.
    void merge() noexcept {
        for (std::size_t i = 0; i < learned_.size(); ++i) {
            learned_[i].end = std::max(learned_[i].end, noted_[i].end);
            learned_[i].pool_bytes = std::max(learned_[i].pool_bytes, noted_[i].pool_bytes);
        }
    }

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
    void begin_iteration() noexcept {
        const std::lock_guard guard(mutex_);
        learner_.begin_iteration();
    }
    /// Ends the recorded iteration, if any. Returns whether enough was learned for a plan. Throws
    /// std::bad_alloc. For the arena's owner.
    bool end_iteration() {
        const std::lock_guard guard(mutex_);
        if (!learner_.is_noting()) return false;
        const bool is_learned = learner_.end_iteration();
        totals_.buffers.store(learner_.learned().size(), std::memory_order_relaxed);
        return is_learned;
    }
    /// For the arena's owner, between iterations.
    const std::vector<Request>& learned() const noexcept { return learner_.learned(); }
    void forget_learned() noexcept {
        const std::lock_guard guard(mutex_);
        learner_.forget();
    }

    /// Adds a request and its block, which the arena's callers free. Throws std::bad_alloc.
    void add(void* block, std::size_t bytes, std::size_t alignment, std::size_t pool_bytes,
             Answer answer) {
        remember(block, bytes, alignment, pool_bytes, false);
        count(answer, pool_bytes);
    }
    /// Adds a request and its block, whose free `pool` notes. Without memory for a record, the
    /// block is the pool's alone.
    void add_noted(detail::Pool& pool, void* block, std::size_t bytes, std::size_t alignment,
                   Answer answer) noexcept {
        const std::size_t pool_bytes = detail::bytes_of_block_in_use(block);
        try {
            remember(block, bytes, alignment, pool_bytes, true);
        } catch (const std::exception&) {
            return;
        }
        count(answer, pool_bytes);
        if (!kinds::note_free_of(pool.parts(), block)) kinds::report_free(pool.parts(), block, {});
    }
    /// Notes the free of a block. Returns false if there is none at `p`.
    bool note_free(void* p) noexcept {
        std::uint64_t bytes = 0;
        {
            const std::lock_guard guard(mutex_);
            const auto found = blocks_.find(p);
            if (found == blocks_.end()) return false;
            bytes = found->second.bytes;
            learner_.note_end(found->second.ticket);
            blocks_.erase(found);
        }
        count_freed(bytes);
        return true;
    }
    /// Lets the pool forget that frees of blocks are noted. REQUIRES: the lock of `block_servers`
    /// is held.
    void forget_noted(detail::Pool& pool) noexcept {
        const std::lock_guard guard(mutex_);
        std::erase_if(blocks_, [&](const auto& entry) {
            const auto& [p, block] = entry;
            if (!block.is_noted) return false;
            kinds::forget_free_of(pool.parts(), p);
            count_freed(block.bytes);
            return true;
        });
    }
    /// Returns all blocks to their pool. For the end of the arena.
    void return_all(MemoryPool& pool) noexcept {
        for (const auto& [p, block] : blocks_) pool.deallocate(p);
    }

private:
    struct Block {
        std::uint64_t bytes;     // usable size of the pool's block
        Learner::Ticket ticket;  // the learner's record of the request
        bool is_noted;           // freed by callers of the pool, which notes the free
    };

    void remember(void* block, std::size_t bytes, std::size_t alignment, std::size_t pool_bytes,
                  bool is_noted) {
        const std::lock_guard guard(mutex_);
        try {
            Learner::Ticket ticket;
            if (learner_.is_noting()) ticket = learner_.note(bytes, alignment, pool_bytes);
            blocks_.insert_or_assign(block, Block{pool_bytes, ticket, is_noted});
        } catch (...) {
            learner_.forget();  // this iteration is no longer recorded completely
            throw;
        }
    }
    void count(Answer answer, std::size_t pool_bytes) noexcept {
        if (answer == Answer::served || answer == Answer::left_to_pool) {
            return totals_.count_from_pool(pool_bytes);
        }
        auto& misses = answer == Answer::too_large      ? totals_.too_large
                       : answer == Answer::out_of_order ? totals_.out_of_order
                       : answer == Answer::unknown      ? totals_.unknown
                                                        : totals_.still_in_use;
        totals_.count_missed(misses, pool_bytes);
    }
    void count_freed(std::uint64_t bytes) noexcept {
        if (first_owner_.load(std::memory_order_relaxed) == &detail::thread_table) {
            totals_.count_pool_freed(bytes);
        } else {
            totals_.count_pool_freed_elsewhere(bytes);
        }
    }

    std::mutex& mutex_;
    statistics::PlannedTotals& totals_;
    const std::atomic<const void*>& first_owner_;
    std::unordered_map<void*, Block> blocks_;  // that callers hold
    Learner learner_;
};

}  // namespace tensorpool::planned
