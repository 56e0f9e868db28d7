// The set-up of the freezer, and the thread that serves faults.

#include <mutex>
#include <thread>

#include "platform/fail.hpp"
#include "platform/platform.hpp"
#include "platform/threads/own_thread.hpp"
#include "rest/in_place/freezer.hpp"
#include "rest/in_place/frozen_block.hpp"

namespace tensorpool::stashing {
namespace {

using platform::FaultScope;

constexpr const char* no_faults =
    "tensorpool: freeze: the system lets this process serve no page faults: userfaultfd(2) with "
    "protection from writes, which Linux has since 5.7, is missing or refused; use a Stash instead";
constexpr const char* user_mode_only =
    "tensorpool: freeze: the system lets this process serve page faults of instructions only, so a "
    "system call that reads or writes a frozen block would fail with EFAULT; accept that by "
    "FreezeOptions::system_calls_may_fail, or use a Stash; all faults are allowed by "
    "vm.unprivileged_userfaultfd=1, by access to /dev/userfaultfd, or with CAP_SYS_PTRACE";

}  // namespace

// Threads that come meanwhile wait: the set-up calls malloc, so no lock is held.
void Freezer::set_up(bool system_calls_may_fail) {
    for (State seen = State::none; !state_.compare_exchange_weak(seen, State::starting);
         seen = State::none) {
        if (seen == State::running) {
            const bool suffices = source_.scope == FaultScope::all || system_calls_may_fail;
            return suffices ? void() : throw FreezeError(user_mode_only);
        }
        std::this_thread::yield();
    }
    try {
        try_set_up(system_calls_may_fail);
    } catch (...) {
        if (source_.file >= 0) platform::close_fault_source(source_);
        source_ = {};
        state_ = State::none;
        throw;
    }
    const std::lock_guard guard(lock_);
    state_ = is_handler_lost_ ? State::none : State::running;
}

void Freezer::try_set_up(bool system_calls_may_fail) {
    source_ = platform::open_fault_source(max_scope_);
    if (source_.scope == FaultScope::none || !platform::decommit_keeps_access()) {
        throw FreezeError(no_faults);
    }
    if (source_.scope == FaultScope::user_mode && !system_calls_may_fail) {
        throw FreezeError(user_mode_only);
    }
    if (!tools_.is_set_up() && !tools_.set_up()) {
        throw FreezeError("tensorpool: freeze: the system has no memory for the decoder");
    }
    if (!watch_forks()) {
        throw FreezeError("tensorpool: freeze: the system has no memory for handlers of forks");
    }
    // It may be a server already: this may be the child of a fork, or an earlier set-up failed.
    kinds::block_servers().leave(*this);
    kinds::block_servers().enter(*this);
    if (!start_handler()) {
        throw FreezeError("tensorpool: freeze: the system starts no thread to serve page faults");
    }
}

bool Freezer::start_handler() noexcept {
    is_handler_lost_ = false;
    const platform::OwnThread handler = platform::start_own_thread(
        "tensorpool-thaw", [] { freezer().serve_faults(); }, platform::Priority::same);
    if (handler) platform::detach_own_thread(handler);
    return static_cast<bool>(handler);
}

void Freezer::serve_faults() noexcept {
    platform::PageFault fault;
    while (platform::next_fault(source_, fault)) {
        lock_.lock_as_handler();
        serve(fault);
        lock_.unlock();
    }
    lock_.lock_as_handler();
    if (!blocks_.empty()) fail_without_source();
    // A block that is frozen now is refused; the next one gets another source and handler.
    platform::close_fault_source(source_);
    is_handler_lost_ = true;
    if (state_ == State::running) state_ = State::none;
    lock_.unlock();
}

void Freezer::fail_without_source() noexcept {
    platform::fail(
        "freeze: %s descriptor %d, through which the page faults of %zu frozen blocks are served",
        platform::is_open(source_) ? "the system refused to read" : "the program closed",
        source_.file, blocks_.size());
}

// A thread may still wait for a block that was thawed or freed since, or touch a block that the
// system refused to take out of the source.
void Freezer::serve(const platform::PageFault& fault) noexcept {
    FrozenBlock* const block = blocks_.find_range(fault.address);
    if (block == nullptr) {
        platform::unwatch_faults(source_, fault.address, platform::page_bytes());
        return platform::wake_faults(source_, fault.address, platform::page_bytes());
    }
    const std::uint32_t piece = block->piece_of(fault.address);
    const Done done = block->serve(piece, fault.is_write, source_, tools_);
    if (done != Done::yes) fail(*block, piece, done);
    block->make_room(source_, tools_);
}

// No error can be reported to the thread that waits for the piece.
void Freezer::fail(const FrozenBlock& block, std::uint32_t piece, Done done) noexcept {
    if (state_ == State::running && !platform::is_open(source_)) fail_without_source();
    const bool has_name = *block.name() != '\0';
    platform::fail("freeze: %s%s%sblock %p: piece %u of %u cannot come back: %s",
                   has_name ? "'" : "", block.name(), has_name ? "', " : "", block.block(), piece,
                   block.piece_count(), reason_of(done));
}

}  // namespace tensorpool::stashing
