#include <exception>
#include <optional>

#include <tensorpool/detail/address_range.hpp>

#include "base/checks.hpp"
#include "events/misuse.hpp"
#include "kinds/reports.hpp"
#include "kinds/served_kind.hpp"
#include "planned/planned_state.hpp"

namespace tensorpool::detail {

// Requests that the plan serves are not checked, because the check would slow down each of them.
void PlannedState::check_thread() const noexcept {
    if (!base::checks_calls(options_.checks) || !in_iteration_ || owner_ == &thread_table) return;
    events::stop_at_misuse(
        {.kind = events::MisuseKind::wrong_thread, .owner = options_.name},
        "allocate: planned arena '%s' belongs to the thread that began its iteration, and another "
        "one used it",
        options_.name.c_str());
}

// What the pool serves for this arena is not served by another arena's plan.
void* PlannedState::allocate(std::size_t bytes, std::size_t alignment) {
    const kinds::ServingThread paused({});
    return serve_or(bytes, alignment, [&] { return pool_.allocate(bytes, alignment); });
}

void* PlannedState::try_allocate(std::size_t bytes, std::size_t alignment) noexcept {
    const kinds::ServingThread paused({});
    try {
        return serve_or(bytes, alignment, [&] { return pool_.try_allocate(bytes, alignment); });
    } catch (const std::exception&) {
        return nullptr;  // no memory for the record of the block
    }
}

// A request that fails leaves the position in the sequence unchanged.
template <class Get>
void* PlannedState::serve_or(std::size_t bytes, std::size_t alignment, Get get) {
    check_thread();
    const PlannedBuffer* const before = arena_.next_;
    const Turn turn = find_turn(bytes, alignment);
    if (turn.buffer != nullptr) return serve(*turn.buffer);
    void* block = nullptr;
    try {
        block = get();
        if (block != nullptr) return hand_on(block, bytes, alignment, turn.answer);
    } catch (...) {
        arena_.next_ = before;
        if (block != nullptr) pool_.deallocate(block);
        throw;
    }
    arena_.next_ = before;
    return nullptr;
}

PlannedState::Turn PlannedState::find_turn(std::size_t bytes, std::size_t alignment) noexcept {
    if (!in_iteration_ || !has_turns_) return {Answer::left_to_pool, nullptr, arena_.next_};
    const Turn turn = follower_->find(*arena_.next_, bytes, alignment);
    arena_.next_ = turn.next;
    return turn;
}

void* PlannedState::serve(const PlannedBuffer& buffer) noexcept {
    plan_->tables().hand_out(buffer);
    add(totals_.served, 1);
    add(totals_.served_bytes, buffer.bytes);
    return buffer.address;
}

void* PlannedState::hand_on(void* block, std::size_t bytes, std::size_t alignment, Answer answer) {
    const std::size_t pool_bytes = pool_.usable_size(block);
    remember(block, bytes, alignment, pool_bytes, FreedBy::arena);
    count(answer, pool_bytes);
    return block;
}

// Without memory for a record, the block is the pool's alone.
void PlannedState::note(Pool& pool, void* block, std::size_t bytes, std::size_t alignment,
                        Answer answer) noexcept {
    const std::size_t pool_bytes = bytes_of_block_in_use(block);
    try {
        remember(block, bytes, alignment, pool_bytes, FreedBy::pool);
    } catch (const std::exception&) {
        return;
    }
    count(answer, pool_bytes);
    if (!kinds::note_free_of(pool.parts(), block)) kinds::report_free(pool.parts(), block, {});
}

void PlannedState::remember(void* block, std::size_t bytes, std::size_t alignment,
                            std::size_t pool_bytes, FreedBy freed_by) {
    const std::lock_guard guard(mutex_);
    try {
        planned::Learner::Ticket ticket;
        if (learner_.is_noting()) ticket = learner_.note(bytes, alignment, pool_bytes);
        blocks_.add(block, {pool_bytes, ticket, freed_by == FreedBy::pool});
    } catch (...) {
        learner_.forget();  // this iteration is no longer recorded completely
        throw;
    }
}

void PlannedState::count(Answer answer, std::size_t pool_bytes) noexcept {
    switch (answer) {
        case Answer::too_large:
            return totals_.count_missed(totals_.too_large, pool_bytes);
        case Answer::out_of_order:
            return totals_.count_missed(totals_.out_of_order, pool_bytes);
        case Answer::unknown:
            return totals_.count_missed(totals_.unknown, pool_bytes);
        case Answer::still_in_use:
            return totals_.count_missed(totals_.still_in_use, pool_bytes);
        case Answer::served:
        case Answer::left_to_pool:
            return totals_.count_from_pool(pool_bytes);
    }
}

void PlannedState::deallocate(void* p) noexcept {
    if (!free_of_pool(p)) refuse_free(p);
}

bool PlannedState::free_of_pool(void* p) noexcept {
    if (!note_free(p)) return false;
    pool_.deallocate(p);
    return true;
}

bool PlannedState::note_free(void* p) noexcept {
    std::optional<planned::PoolBlocks::Block> block;
    {
        const std::lock_guard guard(mutex_);
        block = blocks_.remove(p);
        if (block) learner_.note_end(block->ticket);
    }
    if (block) count_pool_freed(block->bytes);
    return block.has_value();
}

void PlannedState::forget_noted() noexcept {
    Pool& pool = PoolAccess::of(pool_);
    const std::lock_guard guard(mutex_);
    blocks_.take_noted([&](void* p, std::uint64_t bytes) {
        kinds::forget_free_of(pool.parts(), p);
        count_pool_freed(bytes);
    });
}

void PlannedState::count_pool_freed(std::uint64_t bytes) noexcept {
    if (arena_.is_first_owner()) {
        totals_.count_pool_freed(bytes);
    } else {
        totals_.count_pool_freed_elsewhere(bytes);
    }
}

void PlannedState::refuse_free(const void* p) const noexcept {
    events::report_misuse(
        {.kind = events::MisuseKind::foreign_free, .pointer = p, .owner = options_.name},
        "planned arena '%s': deallocate: %p is not a block in use of this "
        "arena",
        options_.name.c_str(), p);
}

}  // namespace tensorpool::detail
