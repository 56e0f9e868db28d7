#include "arena/scratch/scratch_registry.hpp"

#include <utility>

#include "arena/scratch/scratch_operators.hpp"
#include "arena/scratch/scratch_state.hpp"
#include "base/never_destroyed.hpp"
#include "platform/platform.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/tools/memory_tools.hpp"

namespace tensorpool {
namespace detail {
inline namespace abi_2 {

constinit thread_local Scratch* local_scratch TENSORPOOL_INITIAL_EXEC = nullptr;

}  // namespace abi_2
}  // namespace detail

namespace arena {
namespace {

constinit base::NeverDestroyed<ScratchRegistry> the_registry;

void give_back_local() noexcept {
    Scratch* const scratch = detail::local_scratch;
    detail::local_scratch = nullptr;
    delete scratch;
}

// Set while the library is loaded, before there are threads.
[[maybe_unused]] const bool watches_forks_from_the_start = platform::set_fork_handlers(
    platform::ForkStage::scratches, [] { scratch_registry().before_fork(); },
    [] { scratch_registry().after_fork_in_parent(); },
    [] { scratch_registry().after_fork_in_child(); });

}  // namespace

ScratchRegistry& scratch_registry() noexcept {
    return the_registry.get();
}

void ScratchRegistry::enter(detail::ScratchState& scratch) noexcept {
    // Fails for a thread in its last destructors: memory that it takes now stays until the process
    // ends.
    (void)platform::call_at_thread_exit(exit_handler());
    const std::lock_guard guard(mutex_);
    scratch.next_of_all = first_;
    first_ = &scratch;
    scratch.show_quick_path(!hidden_ && !platform::has_memory_tool());
}

// Under the lock, so that no fork comes in the middle of the initialization: the child would wait
// for its end forever.
platform::ExitHandler ScratchRegistry::exit_handler() noexcept {
    const std::lock_guard guard(mutex_);
    static const platform::ExitHandler handler = platform::add_thread_exit_handler(give_back_local);
    return handler;
}

void ScratchRegistry::hide_quick_paths() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_ = true;
    for_each([](detail::ScratchState& one) { one.show_quick_path(false); });
}

void ScratchRegistry::show_quick_paths() noexcept {
    const std::lock_guard guard(mutex_);
    hidden_ = false;
    for_each([](detail::ScratchState& one) { one.show_quick_path(true); });
}

void ScratchRegistry::before_fork() noexcept {
    scratch_operators().lock();
    mutex_.lock();
}

void ScratchRegistry::after_fork_in_parent() noexcept {
    mutex_.unlock();
    scratch_operators().unlock();
}

// The child has only the forking thread.
void ScratchRegistry::after_fork_in_child() noexcept {
    after_fork_in_parent();
    detail::ScratchState* scratch = std::exchange(first_, nullptr);
    while (scratch != nullptr) {
        detail::ScratchState& one = *scratch;
        scratch = std::exchange(one.next_of_all, nullptr);
        if (&one.scratch() == detail::local_scratch) {
            first_ = &one;
            one.belong_to_this_thread();
        } else {
            one.abandon();
        }
    }
}

}  // namespace arena
}  // namespace tensorpool
