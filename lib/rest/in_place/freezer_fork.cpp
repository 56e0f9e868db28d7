// Frozen blocks around a fork. In the child, the system watches no range, so pieces at rest would
// read as zeros.

#include <mutex>
#include <utility>

#include "platform/process/fork_handlers.hpp"
#include "rest/in_place/freezer.hpp"

namespace tensorpool::stashing {
namespace {

using platform::ForkStage;
using platform::set_fork_handlers;

// ThreadSanitizer ends a process that starts a thread in the child of a fork.
#ifdef __SANITIZE_THREAD__
constexpr bool child_may_start_threads = false;
#else
constexpr bool child_may_start_threads = true;
#endif

void do_nothing() noexcept {}

}  // namespace

// Set when the first block is frozen, so that other programs take no lock more at a fork. The lock
// of block servers is already taken at this place if the program contains planned arenas.
bool Freezer::watch_forks() noexcept {
    (void)set_fork_handlers(
        ForkStage::planned, [] { kinds::block_servers().lock(); },
        [] { kinds::block_servers().unlock(); }, [] { kinds::block_servers().unlock(); });
    return set_fork_handlers(
               ForkStage::frozen_blocks, [] { freezer().lock_.lock(); },
               [] { freezer().lock_.unlock(); },
               [] {
                   freezer().lock_.forget_handler();
                   freezer().lock_.unlock();
               }) &&
           set_fork_handlers(ForkStage::fault_handler, do_nothing, do_nothing,
                             [] { freezer().begin_in_child(); });
}

// The child has one thread, and no piece is touched before this returns. Starting a thread calls
// malloc, so it is started after the locks of pools are released.
void Freezer::begin_in_child() noexcept {
    const State before = state_.exchange(State::none);
    const platform::FaultSource of_parent = std::exchange(source_, {});
    if (before == State::running) platform::close_fault_source(of_parent);
    if (blocks_.empty()) return;
    if (child_may_start_threads && serve_in_child(of_parent.scope)) {
        state_ = State::running;
        return;
    }
    thaw_in_child();
}

// A parent that has given up rights since may have a source that its child cannot open: system
// calls of the child must not fail where those of the parent work.
bool Freezer::serve_in_child(platform::FaultScope scope) noexcept {
    source_ = platform::open_fault_source(max_scope_);
    bool is_served = source_.scope >= scope;
    for (FrozenBlock& block : blocks_) {
        block.begin_anew();
        is_served =
            is_served && platform::watch_faults(source_, block.range().begin, block.range().bytes);
    }
    if (is_served && start_handler()) return true;
    // Closing it ends the watch of all ranges.
    if (source_.file >= 0) platform::close_fault_source(source_);
    source_ = {};
    return false;
}

void Freezer::thaw_in_child() noexcept {
    while (!blocks_.empty()) {
        FrozenBlock& block = *blocks_.begin();
        for (std::uint32_t piece = 0; piece != block.piece_count(); ++piece) {
            const Done done = block.bring_back_unwatched(piece, tools_);
            if (done != Done::yes) fail(block, piece, done);
        }
        end(block);
    }
}

}  // namespace tensorpool::stashing
