#include "arena/arena_registry.hpp"

#include "arena/arena_state.hpp"
#include "base/never_destroyed.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool::arena {
namespace {

constinit base::NeverDestroyed<ArenaRegistry> the_registry;

// Set while the library is loaded, before there are threads, as the pools' registry does.
[[maybe_unused]] const bool watches_forks_from_the_start = platform::set_fork_handlers(
    platform::ForkStage::arenas, [] { arena_registry().before_fork(); },
    [] { arena_registry().after_fork_in_parent(); },
    [] { arena_registry().after_fork_in_child(); });

}  // namespace

ArenaRegistry& arena_registry() noexcept {
    return the_registry.get();
}

void ArenaRegistry::set_quick_bytes(detail::ArenaState& arena, std::size_t bytes) noexcept {
    const std::lock_guard guard(mutex_);
    arena.quick_bytes = bytes;
    arena.show_quick_path(!hidden_ && !platform::has_memory_tool());
}

void ArenaRegistry::hide_quick_paths() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_ = true;
    for_each([](detail::ArenaState& arena) { arena.show_quick_path(false); });
}

void ArenaRegistry::show_quick_paths() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_ = false;
    for_each([](detail::ArenaState& arena) { arena.show_quick_path(true); });
}

void ArenaRegistry::before_fork() noexcept {
    mutex_.lock();
    for_each([](detail::ArenaState& arena) { arena.lock(); });
}

void ArenaRegistry::after_fork_in_parent() noexcept {
    for_each([](detail::ArenaState& arena) { arena.unlock(); });
    mutex_.unlock();
}

void ArenaRegistry::after_fork_in_child() noexcept {
    for_each([](detail::ArenaState& arena) { arena.cancel_pending_claims(); });
    after_fork_in_parent();
}

}  // namespace tensorpool::arena
