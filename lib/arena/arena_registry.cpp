#include "arena/arena_registry.hpp"

#include "arena/arena_state.hpp"
#include "base/never_destroyed.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool::arena {
namespace {

constinit base::NeverDestroyed<ArenaRegistry> the_registry;

// While the library is loaded, before there are threads, as the pools' registry does it.
[[maybe_unused]] const bool watches_forks_from_the_start = platform::set_fork_handlers(
    platform::ForkPlace::arenas, [] { arena_registry().before_fork(); },
    [] { arena_registry().after_fork_in_parent(); },
    [] { arena_registry().after_fork_in_child(); });

}  // namespace

ArenaRegistry& arena_registry() noexcept {
    return the_registry.get();
}

void ArenaRegistry::enter(detail::ArenaState& arena) noexcept {
    const std::lock_guard guard(mutex_);
    arena.next_of_all = arenas_;
    arenas_ = &arena;
}

void ArenaRegistry::leave(detail::ArenaState& arena) noexcept {
    const std::lock_guard guard(mutex_);
    detail::ArenaState** link = &arenas_;
    while (*link != &arena) link = &(*link)->next_of_all;
    *link = arena.next_of_all;
}

void ArenaRegistry::set_quick_bytes(detail::ArenaState& arena, std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    arena.quick_bytes = bytes;
    arena.show_quick_path(!hidden_);
}

void ArenaRegistry::hide_quick_paths() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_ = true;
    for (auto* arena = arenas_; arena != nullptr; arena = arena->next_of_all) {
        arena->show_quick_path(false);
    }
}

void ArenaRegistry::show_quick_paths() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_ = false;
    for (auto* arena = arenas_; arena != nullptr; arena = arena->next_of_all) {
        arena->show_quick_path(true);
    }
}

void ArenaRegistry::before_fork() noexcept {
    mutex_.lock();
    for (auto* arena = arenas_; arena != nullptr; arena = arena->next_of_all) arena->lock();
}

void ArenaRegistry::after_fork_in_parent() noexcept {
    for (auto* arena = arenas_; arena != nullptr; arena = arena->next_of_all) arena->unlock();
    mutex_.unlock();
}

void ArenaRegistry::after_fork_in_child() noexcept {
    for (auto* arena = arenas_; arena != nullptr; arena = arena->next_of_all) {
        arena->cancel_pending_claims();
    }
    after_fork_in_parent();
}

}  // namespace tensorpool::arena
