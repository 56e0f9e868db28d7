#include <exception>

#include "base/checks.hpp"
#include "events/misuse.hpp"
#include "plan/planned_state.hpp"

namespace tensorpool::detail {
namespace {

// Requests that the plan serves are not checked, because the check would slow down each of them.
void check_thread(const PlannedArenaOptions& options, const void* owner) noexcept {
    if (!base::checks_calls(options.checks) || owner == &thread_table) return;
    events::stop_at_misuse(
        {.kind = events::MisuseKind::wrong_thread, .owner = options.name},
        "allocate: planned arena '%s' belongs to the thread that began its iteration, and another "
        "one used it",
        options.name.c_str());
}

}  // namespace

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
    if (in_iteration_) check_thread(options_, owner_);
    const PlannedBuffer* const before = arena_.next_;
    const Turn turn = find_turn(bytes, alignment);
    if (turn.buffer != nullptr) return serve(*turn.buffer);
    void* block = nullptr;
    try {
        block = get();
        if (block != nullptr) {
            requests_.add(block, bytes, alignment, pool_.usable_size(block), turn.answer);
            return block;
        }
    } catch (...) {
        arena_.next_ = before;
        if (block != nullptr) pool_.deallocate(block);
        throw;
    }
    arena_.next_ = before;
    return nullptr;
}

PlannedState::Turn PlannedState::find_turn(std::size_t bytes, std::size_t alignment) noexcept {
    if (!in_iteration_ || !has_turns_)
        return {planned::Follower::Answer::left_to_pool, nullptr, arena_.next_};
    const Turn turn = follower_->find(*arena_.next_, bytes, alignment);
    arena_.next_ = turn.next;
    return turn;
}

void* PlannedState::serve(const PlannedBuffer& buffer) noexcept {
    plans_.current()->tables().hand_out(buffer);
    add(totals_.served, 1);
    add(totals_.served_bytes, buffer.bytes);
    return buffer.address;
}

void PlannedState::deallocate(void* p) noexcept {
    if (requests_.note_free(p)) return pool_.deallocate(p);
    events::report_misuse(
        {.kind = events::MisuseKind::foreign_free, .pointer = p, .owner = options_.name},
        "planned arena '%s': deallocate: %p is not a block in use of this "
        "arena",
        options_.name.c_str(), p);
}

}  // namespace tensorpool::detail
