#pragma once

#include <cstddef>
#include <map>
#include <memory>

#include <tensorpool/planned_arena.hpp>

#include "plan/pool_requests.hpp"
#include "plan/served_plan.hpp"

namespace tensorpool::planned::testing {

/// A subject for the model: a planned arena.
class ArenaSubject {
public:
    void begin_iteration() { arena_.begin_iteration(); }
    void end_iteration() { arena_.end_iteration(); }
    void* allocate(std::size_t bytes, std::size_t alignment) {
        return arena_.allocate(bytes, alignment);
    }
    void deallocate(void* p) { arena_.deallocate(p); }
    PlannedArenaStatistics statistics() const { return arena_.statistics(); }

private:
    MemoryPool pool_{PoolOptions{.name = "model"}};
    PlannedArena arena_{{.pool = &pool_, .drift_iterations = 1000, .checks = Checks::full}};
};

/// A subject for the model, built from the parts of a planned arena so that a fault can be
/// injected.
class PartsSubject {
public:
    enum class Fault {
        none,
        no_predecessors,  ///< predecessors are not checked
        one_predecessor,  ///< only the first predecessor of each buffer is checked
        passed_is_free    ///< passed buffers are treated as free
    };
    explicit PartsSubject(Fault fault) : fault_(fault) {}

    void begin_iteration() {
        if (plan_ == nullptr) {
            learner_.begin_iteration();
        } else {
            next_ = plan_->tables().buffers;
        }
    }
    void end_iteration() {
        if (plan_ != nullptr) {
            follower_->end_iteration(*next_);
            forget_passed();
        } else if (learner_.end_iteration()) {
            make_plan();
        }
    }
    void* allocate(std::size_t bytes, std::size_t alignment) {
        if (plan_ == nullptr) return from_pool(bytes, alignment);
        PlanTables& tables = plan_->tables();
        if (next_->is_for(bytes, alignment) && tables.are_predecessors_free(*next_)) {
            const PlannedBuffer& buffer = *next_++;
            tables.hand_out(buffer);
            return buffer.address;
        }
        const Follower::Turn turn = follower_->find(*next_, bytes, alignment);
        forget_passed();
        next_ = turn.next;
        if (turn.buffer == nullptr) return from_pool(bytes, alignment);
        tables.hand_out(*turn.buffer);
        return turn.buffer->address;
    }
    void deallocate(void* p) {
        if (plan_ != nullptr && detail::plan_tables_at(p) == &plan_->tables()) {
            plan_->tables().take_back(plan_->tables().held_at(p));
            return;
        }
        const auto found = tickets_.find(p);
        learner_.note_end(found->second);
        tickets_.erase(found);
        pool_.deallocate(p);
    }

private:
    void* from_pool(std::size_t bytes, std::size_t alignment) {
        void* const block = pool_.allocate(bytes, alignment);
        Learner::Ticket& ticket = tickets_[block];
        ticket = {};
        if (learner_.is_noting()) ticket = learner_.note(bytes, alignment, bytes);
        return block;
    }
    void make_plan() {
        pages::SlowPath path;
        plan_ = ServedPlan::make(plan_sequence(learner_.learned(), {}),
                                 detail::PoolAccess::of(pool_), {}, path);
        follower_ = std::make_unique<Follower>(plan_->tables());
        for (std::uint32_t i = 0; i < plan_->tables().count; ++i) {
            std::uint32_t& count = plan_->tables().buffers[i].predecessor_count;
            if (fault_ == Fault::no_predecessors) count = 0;
            if (fault_ == Fault::one_predecessor) count = count != 0 ? 1 : 0;
        }
    }
    void forget_passed() {
        if (fault_ != Fault::passed_is_free) return;
        for (std::uint32_t i = 0; i < plan_->tables().count; ++i) {
            auto& state = plan_->tables().states[i];
            if (state.load() == BufferState::passed) state.store(BufferState::free);
        }
    }

    Fault fault_;
    MemoryPool pool_{PoolOptions{.name = "model"}};
    Learner learner_{1};
    std::map<void*, Learner::Ticket> tickets_;
    std::unique_ptr<ServedPlan> plan_;
    std::unique_ptr<Follower> follower_;
    const PlannedBuffer* next_ = nullptr;
};

}  // namespace tensorpool::planned::testing
