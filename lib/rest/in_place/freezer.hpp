#pragma once

#include <tensorpool/freeze.hpp>

#include "kinds/kinds.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/threads/own_thread.hpp"
#include "rest/in_place/frozen_block.hpp"

namespace tensorpool::stashing {

using platform::FaultScope;
using platform::ForkStage;
using platform::set_fork_handlers;

/// A lock that the thread which serves faults gets before others: a thread that takes it many times
/// in a row, for one piece after another, does not keep faults waiting.
class HandlerLock {
public:
    constexpr HandlerLock() noexcept = default;

    void lock() noexcept {
        // Relaxed: a thread that misses the change takes the lock once more at most.
        while (handler_waits_.load(std::memory_order_relaxed)) std::this_thread::yield();
        mutex_.lock();
    }
    void unlock() noexcept { mutex_.unlock(); }

    void lock_as_handler() noexcept {
        handler_waits_.store(true, std::memory_order_relaxed);
        mutex_.lock();
        handler_waits_.store(false, std::memory_order_relaxed);
    }
    /// For the child of a fork, which has no such thread. REQUIRES: the lock is held.
    void forget_handler() noexcept { handler_waits_.store(false, std::memory_order_relaxed); }

private:
    std::mutex mutex_;
    std::atomic<bool> handler_waits_ = false;
};

struct BeginOfFrozen {
    using type = const std::byte*;
    type operator()(const FrozenBlock& block) const noexcept { return block.range().begin; }
};

/// Frozen blocks by the addresses where their ranges begin.
struct FrozenBlocks
    : boost::intrusive::set<FrozenBlock, boost::intrusive::key_of_value<BeginOfFrozen>> {
    /// Returns the frozen block `block`, or nullptr.
    // The range begins in the block's first page.
    FrozenBlock* find_block(const void* p) noexcept {
        const auto found = lower_bound(static_cast<const std::byte*>(p));
        return found != end() && found->block() == p ? &*found : nullptr;
    }
    /// Returns the frozen block whose range contains `address`, or nullptr.
    FrozenBlock* find_range(const void* address) noexcept {
        const auto* const at = static_cast<const std::byte*>(address);
        auto behind = upper_bound(at);
        if (behind == begin()) return nullptr;
        FrozenBlock& block = *--behind;
        const auto offset = static_cast<std::size_t>(at - block.range().begin);
        return offset < block.range().bytes ? &block : nullptr;
    }
};

inline void add(FreezeStatistics& sum, const FrozenBlock& block) noexcept {
    ++sum.blocks;
    sum.frozen_bytes += block.range().bytes;
    sum.bytes_at_rest += block.bytes_at_rest();
    sum.resident_bytes += block.resident_bytes();
    sum.faults += block.faults();
    sum.encoded_again += block.encoded_again();
}

// So that all of them are present: one that was never touched maps the system's page of zeros.
// Other threads may write to them.
[[gnu::no_sanitize("thread")]] inline void read_each_page(const FrozenRange& range) noexcept {
    const std::size_t page = platform::page_bytes();
    for (std::size_t at = 0; at < range.bytes; at += page) {
        (void)*static_cast<volatile std::byte*>(range.begin + at);
    }
}

class Freezer;

Freezer& freezer() noexcept;

// ThreadSanitizer ends a process that starts a thread in the child of a fork.
#ifdef __SANITIZE_THREAD__
inline constexpr bool child_may_start_threads = false;
#else
inline constexpr bool child_may_start_threads = true;
#endif

inline void do_nothing() noexcept {}

inline constexpr const char* no_faults =
    "tensorpool: freeze: the system lets this process serve no page faults: userfaultfd(2) with "
    "protection from writes, which Linux has since 5.7, is missing or refused; use a Stash instead";

inline constexpr const char* user_mode_only =
    "tensorpool: freeze: the system lets this process serve page faults of instructions only, so a "
    "system call that reads or writes a frozen block would fail with EFAULT; accept that by "
    "FreezeOptions::system_calls_may_fail, or use a Stash; all faults are allowed by "
    "vm.unprivileged_userfaultfd=1, by access to /dev/userfaultfd, or with CAP_SYS_PTRACE";

/// All frozen blocks of the process, and the thread that serves their page faults. There is one,
/// and its lock guards it: a thread that holds the lock touches no piece at rest, for which the
/// handler would need the lock. Thread-safe.
class Freezer final : private kinds::BlockServer {
public:
    /// Freezes the whole pages of a block. Throws FreezeError if the system does not allow it.
    /// REQUIRES: the block is in use, of whole pages, and not frozen.
    void freeze(const FrozenBlock::Settings& settings, bool system_calls_may_fail) {
        set_up(system_calls_may_fail);
        if (!leaves_mappings()) {
            throw FreezeError(
                block_message("freeze", settings.name, settings.block) +
                "the process has three quarters of the mappings that vm.max_map_count "
                "allows; the rest is left to other code, such as new threads");
        }
        FrozenBlock* const block = FrozenBlock::make(settings);
        if (block == nullptr) {
            throw FreezeError(block_message("freeze", settings.name, settings.block) +
                              "the system has no address space for the encoded content");
        }
        read_each_page(settings.range);
        block->set_in_use(true);
        if (!insert(*block)) {
            FrozenBlock::destroy(*block);
            throw std::invalid_argument(block_message("freeze", settings.name, settings.block) +
                                        "it is frozen already");
        }
        if (platform::watch_faults(source_, settings.range.begin, settings.range.bytes) &&
            encode_all(*block)) {
            ++block->totals().stashes;
            return end_use(*block);
        }
        ++block->totals().failures;
        std::uint32_t piece = 0;
        const bool is_whole = bring_all_back(*block, piece) == Done::yes;
        is_whole ? end(*block) : end_use(*block);
        throw FreezeError(refused_message(settings, is_whole));
    }
    /// Thaws a block. Returns false if it is not frozen. Throws FreezeError if a piece cannot come
    /// back.
    bool thaw(const void* p) {
        FrozenBlock* const block = begin_use(p);
        if (block == nullptr) return false;
        std::uint32_t piece = 0;
        const Done done = bring_all_back(*block, piece);
        ++(done == Done::yes ? block->totals().restores : block->totals().failures);
        if (done == Done::yes) {
            end(*block);
            return true;
        }
        const EndOfUse end_of_use(*this, *block);  // also if there is no memory for the message
        throw FreezeError(thaw_message(*block, piece, done));
    }
    bool is_frozen(const void* p) noexcept {
        const std::lock_guard guard(lock_);
        return blocks_.find_block(p) != nullptr;
    }
    FreezeStatistics statistics() noexcept {
        FreezeStatistics sum;
        const std::lock_guard guard(lock_);
        for (const FrozenBlock& block : blocks_) add(sum, block);
        return sum;
    }
    FreezeStatistics statistics(const void* p) noexcept {
        FreezeStatistics one;
        const std::lock_guard guard(lock_);
        if (const FrozenBlock* const block = blocks_.find_block(p)) add(one, *block);
        return one;
    }

    /// Limits what the next set-up may use. For tests, before the first block is frozen.
    void limit_scope(platform::FaultScope scope) noexcept { max_scope_ = scope; }
    /// Damages the encoding of a piece at rest. For tests.
    void damage(const void* p, std::uint32_t piece) noexcept {
        const std::lock_guard guard(lock_);
        blocks_.find_block(p)->encoding(piece).back() ^= std::byte{1};
    }

private:
    struct EndOfUse {
        EndOfUse(Freezer& of, FrozenBlock& used) noexcept : freezer(of), block(used) {}
        ~EndOfUse() { freezer.end_use(block); }
        Freezer& freezer;
        FrozenBlock& block;
    };
    // A frozen block takes up to four. Others take mappings too, so the list is read again soon.
    bool leaves_mappings() noexcept {
        constexpr std::size_t most_unread = 256;
        if (blocks_until_look_.fetch_sub(1, std::memory_order_relaxed) > 0) return true;
        const std::size_t left = std::min(platform::mappings_left() / 4, most_unread);
        blocks_until_look_.store(static_cast<int>(left), std::memory_order_relaxed);
        return left != 0;
    }
    // Two threads may have begun to freeze the same block.
    bool insert(FrozenBlock& block) noexcept {
        const std::lock_guard guard(lock_);
        if (!blocks_.insert(block).second) return false;
        (void)kinds::note_free_of(*block.pool(), const_cast<void*>(block.block()));
        return true;
    }
    // The lock is held for one piece at a time, so that faults are served between two pieces.
    bool encode_all(FrozenBlock& block) noexcept {
        for (std::uint32_t piece = 0; piece != block.piece_count(); ++piece) {
            const std::lock_guard guard(lock_);
            if (block.put_to_rest(piece, source_, tools_) != Done::yes) return false;
        }
        return true;
    }
    Done bring_all_back(FrozenBlock& block, std::uint32_t& piece) noexcept {
        for (piece = 0; piece != block.piece_count(); ++piece) {
            const std::lock_guard guard(lock_);
            block.begin_thaw();
            const Done done = block.bring_back(piece, source_, tools_);
            if (done != Done::yes) return done;
        }
        return Done::yes;
    }
    void end_use(FrozenBlock& block) noexcept {
        const std::lock_guard guard(lock_);
        block.end_use();
    }
    void end(FrozenBlock& block) noexcept {
        {
            const std::lock_guard servers(kinds::block_servers());
            const std::lock_guard guard(lock_);
            take_out(block);
            kinds::forget_free_of(*block.pool(), const_cast<void*>(block.block()));
        }
        FrozenBlock::destroy(block);
    }
    // A fault of it that was not served yet finds no block.
    void take_out(FrozenBlock& block) noexcept {
        platform::unwatch_faults(source_, block.range().begin, block.range().bytes);
        blocks_.erase(blocks_.iterator_to(block));
    }
    // Waits while another thread freezes or thaws the block.
    FrozenBlock* begin_use(const void* p) noexcept {
        for (;;) {
            {
                const std::lock_guard guard(lock_);
                FrozenBlock* const block = blocks_.find_block(p);
                if (block == nullptr) return nullptr;
                if (!block->is_in_use()) {
                    block->set_in_use(true);
                    return block;
                }
            }
            std::this_thread::yield();
        }
    }

    // The set-up and the handler thread.
    // Other threads wait until the set-up ends. It calls malloc, so no lock is held.
    void set_up(bool system_calls_may_fail) {
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
    void try_set_up(bool system_calls_may_fail) {
        source_ = platform::open_fault_source(max_scope_);
        if (source_.scope == FaultScope::none) {
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
            throw FreezeError(
                "tensorpool: freeze: the system starts no thread to serve page faults");
        }
    }
    bool start_handler() noexcept {
        is_handler_lost_ = false;
        const platform::OwnThread handler = platform::start_own_thread(
            "tensorpool-thaw", [] { freezer().serve_faults(); }, platform::Priority::same);
        if (handler) platform::detach_own_thread(handler);
        return static_cast<bool>(handler);
    }
    void serve_faults() noexcept {
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
    // A thread may still wait for a block that was thawed or freed since, or touch a block that the
    // system refused to take out of the source.
    void serve(const platform::PageFault& fault) noexcept {
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
    [[noreturn]] void fail_without_source() noexcept {
        platform::fail(
            "freeze: %s descriptor %d, through which the page faults of %zu frozen blocks are "
            "served",
            platform::is_open(source_) ? "the system refused to read" : "the program closed",
            source_.file, blocks_.size());
    }
    // No error can be reported to the thread that waits for the piece.
    [[noreturn]] void fail(const FrozenBlock& block, std::uint32_t piece, Done done) noexcept {
        if (state_ == State::running && !platform::is_open(source_)) fail_without_source();
        const bool has_name = *block.name() != '\0';
        platform::fail("freeze: %s%s%sblock %p: piece %u of %u cannot come back: %s",
                       has_name ? "'" : "", block.name(), has_name ? "', " : "", block.block(),
                       piece, block.piece_count(), reason_of(done));
    }

    // Forks.
    // Set when the first block is frozen, so that other programs take no lock more at a fork. The
    // lock of block servers is already taken at this place if the program contains planned arenas.
    [[nodiscard]] bool watch_forks() noexcept {
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
    // The child has one thread, and no piece is touched before this returns. Starting a thread
    // calls malloc, so it is started after the locks of pools are released.
    void begin_in_child() noexcept {
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
    bool serve_in_child(platform::FaultScope scope) noexcept {
        source_ = platform::open_fault_source(max_scope_);
        bool is_served = source_.scope >= scope;
        for (FrozenBlock& block : blocks_) {
            block.begin_anew();
            is_served = is_served &&
                        platform::watch_faults(source_, block.range().begin, block.range().bytes);
        }
        if (is_served && start_handler()) return true;
        // Closing it ends the watch of all ranges.
        if (source_.file >= 0) platform::close_fault_source(source_);
        source_ = {};
        return false;
    }
    void thaw_in_child() noexcept {
        while (!blocks_.empty()) {
            FrozenBlock& block = *blocks_.begin();
            for (std::uint32_t piece = 0; piece != block.piece_count(); ++piece) {
                const Done done = block.bring_back_unwatched(piece, tools_);
                if (done != Done::yes) fail(block, piece, done);
            }
            end(block);
        }
    }

    // What pools call.
    void* serve(const kinds::Request&, pages::SlowPath&) noexcept override { return nullptr; }
    bool note_free(void* p) noexcept override {
        FrozenBlock* block = nullptr;
        {
            const std::lock_guard guard(lock_);
            block = blocks_.find_block(p);
            if (block == nullptr) return false;
            take_out(*block);
        }
        FrozenBlock::destroy(*block);
        return true;
    }
    void give_back_idle(std::size_t) noexcept override {}
    void note_end_of(unsigned pool_number) noexcept override {
        const std::lock_guard guard(lock_);
        for (auto next = blocks_.begin(); next != blocks_.end();) {
            FrozenBlock& block = *next++;
            if (block.pool()->number() != pool_number) continue;
            take_out(block);
            FrozenBlock::destroy(block);
        }
    }

    enum class State : std::uint8_t { none, starting, running };
    // The release of `running` publishes the source and the tools.
    std::atomic<State> state_ = State::none;
    std::atomic<platform::FaultScope> max_scope_ = platform::FaultScope::all;
    platform::FaultSource source_;
    std::atomic<int> blocks_until_look_ = 0;  // at the mappings of the process

    HandlerLock lock_;
    PieceTools tools_;     // guarded by lock_
    FrozenBlocks blocks_;  // guarded by lock_
    // Whether the handler has ended, because it could not read the source. Guarded by lock_ once it
    // has started.
    bool is_handler_lost_ = false;
};

inline Freezer& freezer() noexcept {
    static base::NeverDestroyed<Freezer> the_freezer;
    return the_freezer.get();
}

}  // namespace tensorpool::stashing
