#pragma once

#include <unordered_map>

#include "kinds/kinds.hpp"
#include "kinds/reports.hpp"
#include "plan/learned_plan.hpp"
#include "plan/owned_planned_record.hpp"
#include "pool/pool.hpp"

namespace tensorpool::planned {

using detail::BufferState;
using detail::PlannedBuffer;
using detail::PlanTables;

inline bool fits(const PlannedBuffer& buffer, std::size_t bytes, std::size_t alignment) noexcept {
    return bytes <= buffer.bytes && alignment <= buffer.max_alignment;
}

inline bool share_bytes(const PlannedBuffer& one, const PlannedBuffer& other) noexcept {
    return one.address < other.address + other.bytes && other.address < one.address + one.bytes;
}

/// Finds the position of an iteration in the plan's sequence when a request is not the expected
/// one. Used by the arena's owner only.
class Follower {
public:
    enum class Answer {
        served,        ///< the buffer may be handed out
        left_to_pool,  ///< the plan leaves this request to the pool
        too_large,     ///< larger than its buffer, or with a larger alignment
        out_of_order,  ///< its turn is over or still to come
        unknown,       ///< the sequence has ended
        still_in_use,  ///< bytes of its buffer are held
    };
    struct Turn {
        Answer answer;
        const PlannedBuffer* buffer;  ///< if served: the buffer to hand out now; else nullptr
        const PlannedBuffer* next;    ///< the buffer whose turn is next
    };

    /// Requires: the tables outlive the follower. Throws std::bad_alloc.
    explicit Follower(PlanTables& tables) : tables_(tables), seen_(tables.count) {
        stack_.reserve(tables.count);
    }

    /// Finds the turn of a request that came where `next` was expected. Requires: `bytes` is above
    /// 0, and `alignment` is a power of two.
    // A request that does not match the next buffer is additional, has changed its size, or comes
    // after requests that were left out. Only the requests after it show which.
    Turn find(const PlannedBuffer& next, std::size_t bytes, std::size_t alignment) noexcept {
        const std::uint32_t present = number_of(next);
        if (matches(present, bytes, alignment)) return take(present);
        const std::uint32_t to = find_jump(present, bytes, alignment);
        if (to != nowhere) return jump(present, to);
        if (suspected_at_ == present || is_late(present, bytes, alignment)) {
            return {Answer::out_of_order, nullptr, &next};
        }
        return take_changed(present, bytes, alignment);
    }
    /// Ends the iteration where `next` was expected: marks the remaining buffers as passed.
    void end_iteration(const PlannedBuffer& next) noexcept {
        pass(number_of(next), tables_.count);
        missed_ = lent_ = suspected_at_ = nowhere;
    }

private:
    // The number of buffers that are searched ahead of and behind the expected one.
    static constexpr std::uint32_t max_ahead = 32;
    static constexpr std::uint32_t nowhere = PlanTables::no_buffer;

    std::uint32_t number_of(const PlannedBuffer& buffer) const noexcept {
        return tables_.number_of(buffer);
    }
    // Buffers that the pool serves are matched by size only; the pool aligns each block as
    // requested.
    bool matches(std::uint32_t number, std::size_t bytes, std::size_t alignment) const noexcept {
        if (number >= tables_.count) return false;
        const PlannedBuffer& buffer = tables_.buffers[number];
        const bool same_size = buffer.bytes - bytes < detail::plan_granule_bytes;
        return same_size && (buffer.address == nullptr || alignment <= buffer.max_alignment);
    }
    // A wrong jump ahead makes every skipped request a miss. So a jump needs two matching requests
    // in a row, or one right after a request that may have grown. Buffers that the pool serves are
    // skipped freely, because they may have been requested only once. After a single match, the
    // jump is suspected until the next request.
    std::uint32_t find_jump(std::uint32_t present, std::size_t bytes,
                            std::size_t alignment) noexcept {
        const bool is_suspected = suspected_at_ == present;
        suspected_at_ = nowhere;
        if (is_suspected && matches(suspected_, bytes, alignment)) return suspected_;
        const std::uint32_t near = step_over_pools(missed_ == present ? present + 1 : present);
        if (matches(near, bytes, alignment)) return near;
        for (std::uint32_t buffer = present + 1; buffer <= present + max_ahead; ++buffer) {
            if (!matches(buffer, bytes, alignment)) continue;
            suspected_at_ = present;
            suspected_ = buffer + 1;
            break;
        }
        return nowhere;
    }
    // Returns whether the request matches a recent buffer that was passed or given to another
    // request.
    bool is_late(std::uint32_t present, std::size_t bytes, std::size_t alignment) const noexcept {
        const std::uint32_t first = present - std::min(present, max_ahead);
        for (std::uint32_t buffer = first; buffer < present; ++buffer) {
            const BufferState state = tables_.states[buffer].load(std::memory_order_relaxed);
            if (state != BufferState::passed && buffer != lent_) continue;
            if (matches(buffer, bytes, alignment)) return true;
        }
        return false;
    }
    Turn jump(std::uint32_t present, std::uint32_t to) noexcept {
        pass(present, to);
        return take(to);
    }
    // Treats the request as the next one in the sequence, with a changed size.
    Turn take_changed(std::uint32_t present, std::size_t bytes, std::size_t alignment) noexcept {
        const std::uint32_t turn = step_over_pools(missed_ == present ? present + 1 : present);
        pass(present, turn);
        const PlannedBuffer& buffer = tables_.buffers[turn];
        if (turn == tables_.count) return {Answer::unknown, nullptr, &buffer};
        if (!fits(buffer, bytes, alignment)) {
            missed_ = turn;
            return {Answer::too_large, nullptr, &buffer};
        }
        lent_ = turn;
        return take(turn);
    }
    std::uint32_t step_over_pools(std::uint32_t buffer) const noexcept {
        while (buffer < tables_.count && tables_.buffers[buffer].address == nullptr) ++buffer;
        return buffer;
    }
    // Serves the buffer if its bytes are free. Its turn is over in any case.
    Turn take(std::uint32_t number) noexcept {
        const PlannedBuffer& buffer = tables_.buffers[number];
        if (buffer.address == nullptr) return {Answer::left_to_pool, nullptr, &buffer + 1};
        if (is_clear(buffer)) return {Answer::served, &buffer, &buffer + 1};
        pass(number, number + 1);
        return {Answer::still_in_use, nullptr, &buffer + 1};
    }
    // Marks buffers as passed, except those that are held (see plan_tables.hpp). The acquire load
    // pairs with the release store of a free, so that accesses by the former holder happen before
    // later ones.
    void pass(std::uint32_t from, std::uint32_t to) noexcept {
        for (std::uint32_t buffer = from; buffer < to; ++buffer) {
            std::atomic<BufferState>& state = tables_.states[buffer];
            if (state.load(std::memory_order_acquire) == BufferState::held) continue;
            state.store(BufferState::passed, std::memory_order_relaxed);
        }
    }
    // Rule 2 of plan_tables.hpp, extended through passed buffers: for each byte of the buffer, the
    // search goes back to the last buffer that was not passed.
    bool is_clear(const PlannedBuffer& buffer) noexcept {
        if (++search_ == 0) {
            std::ranges::fill(seen_, 0);
            search_ = 1;
        }
        stack_.clear();
        push_predecessors(buffer);
        while (!stack_.empty()) {
            const std::uint32_t predecessor = stack_.back();
            stack_.pop_back();
            if (!check_predecessor(predecessor, buffer)) return false;
        }
        return true;
    }
    // Returns false if the predecessor is held and shares bytes with the requested buffer.
    bool check_predecessor(std::uint32_t predecessor, const PlannedBuffer& wanted) noexcept {
        const PlannedBuffer& buffer = tables_.buffers[predecessor];
        if (!share_bytes(buffer, wanted)) return true;
        const BufferState state = tables_.states[predecessor].load(std::memory_order_acquire);
        if (state == BufferState::passed) push_predecessors(buffer);
        return state != BufferState::held;
    }
    void push_predecessors(const PlannedBuffer& buffer) noexcept {
        const std::uint32_t* const first = tables_.predecessors + buffer.first_predecessor;
        for (std::uint32_t i = 0; i < buffer.predecessor_count; ++i) {
            if (seen_[first[i]] == search_) continue;
            seen_[first[i]] = search_;
            stack_.push_back(first[i]);
        }
    }

    PlanTables& tables_;
    // The buffer whose request may have come already, with a larger size.
    std::uint32_t missed_ = nowhere;
    // The buffer that was given to a smaller request, which may have been an additional one.
    std::uint32_t lent_ = nowhere;
    // While `suspected_at_` is the expected buffer: a request matched the buffer right before
    // `suspected_`. If the next request matches `suspected_`, the iteration has jumped there.
    std::uint32_t suspected_at_ = nowhere;
    std::uint32_t suspected_ = nowhere;
    // The search of `is_clear`: the buffers still to visit, and the last search that saw each.
    std::vector<std::uint32_t> stack_;
    std::vector<std::uint32_t> seen_;
    std::uint32_t search_ = 0;
};

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
