#pragma once

#include <tensorpool/freeze.hpp>

#include "kinds/block_server.hpp"
#include "rest/in_place/frozen_block.hpp"

namespace tensorpool::stashing {

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
    FrozenBlock* find_block(const void* block) noexcept;
    /// Returns the frozen block whose range contains `address`, or nullptr.
    FrozenBlock* find_range(const void* address) noexcept;
};

/// All frozen blocks of the process, and the thread that serves their page faults. There is one,
/// and its lock guards it: a thread that holds the lock touches no piece at rest, for which the
/// handler would need the lock. Thread-safe.
class Freezer final : private kinds::BlockServer {
public:
    /// Freezes the whole pages of a block. Throws FreezeError if the system does not allow it.
    /// REQUIRES: the block is in use, of whole pages, and not frozen.
    void freeze(const FrozenBlock::Settings& settings, bool system_calls_may_fail);
    /// Thaws a block. Returns false if it is not frozen. Throws FreezeError if a piece cannot come
    /// back.
    bool thaw(const void* block);
    bool is_frozen(const void* block) noexcept;
    FreezeStatistics statistics() noexcept;
    FreezeStatistics statistics(const void* block) noexcept;

    /// Limits what the next set-up may use. For tests, before the first block is frozen.
    void limit_scope(platform::FaultScope scope) noexcept { max_scope_ = scope; }
    /// Damages the encoding of a piece at rest. For tests.
    void damage(const void* block, std::uint32_t piece) noexcept;

private:
    // freezer.cpp
    struct EndOfUse {
        EndOfUse(Freezer& of, FrozenBlock& used) noexcept : freezer(of), block(used) {}
        ~EndOfUse() { freezer.end_use(block); }
        Freezer& freezer;
        FrozenBlock& block;
    };
    bool insert(FrozenBlock& block) noexcept;
    bool encode_all(FrozenBlock& block) noexcept;
    Done bring_all_back(FrozenBlock& block, std::uint32_t& piece) noexcept;
    void end_use(FrozenBlock& block) noexcept;
    void end(FrozenBlock& block) noexcept;
    void take_out(FrozenBlock& block) noexcept;
    FrozenBlock* begin_use(const void* block) noexcept;

    // The set-up and the handler thread.
    void set_up(bool system_calls_may_fail);
    void try_set_up(bool system_calls_may_fail);
    bool start_handler() noexcept;
    void serve_faults() noexcept;
    void serve(const platform::PageFault& fault) noexcept;
    [[noreturn]] void fail_without_source() noexcept;
    [[noreturn]] void fail(const FrozenBlock& block, std::uint32_t piece, Done done) noexcept;

    // Forks.
    [[nodiscard]] bool watch_forks() noexcept;
    void begin_in_child() noexcept;
    bool serve_in_child(platform::FaultScope scope) noexcept;
    void thaw_in_child() noexcept;

    // What pools call.
    void* serve(const kinds::Request&, pages::SlowPath&) noexcept override { return nullptr; }
    bool note_free(void* p) noexcept override;
    void give_back_idle(std::size_t) noexcept override {}
    void note_end_of(unsigned pool_number) noexcept override;

    enum class State : std::uint8_t { none, starting, running };
    // The release of `running` publishes the source and the tools.
    std::atomic<State> state_ = State::none;
    std::atomic<platform::FaultScope> max_scope_ = platform::FaultScope::all;
    platform::FaultSource source_;

    HandlerLock lock_;
    PieceTools tools_;     // guarded by lock_
    FrozenBlocks blocks_;  // guarded by lock_
    // Whether the handler has ended, because it could not read the source. Guarded by lock_ once it
    // has started.
    bool is_handler_lost_ = false;
};

Freezer& freezer() noexcept;

}  // namespace tensorpool::stashing
