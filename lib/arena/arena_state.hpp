#pragma once

#include <iterator>

#include <tensorpool/arena.hpp>

#include "arena/arena_memory.hpp"
#include "arena/checked_blocks.hpp"
#include "arena/object_register.hpp"
#include "arena/release_history.hpp"
#include "base/checks.hpp"
#include "events/recorder_hooks.hpp"
#include "events/report_at_exit.hpp"
#include "events/timeline.hpp"
#include "platform/process/fork_handlers.hpp"

namespace tensorpool::arena {

/// Throws std::invalid_argument that names the option, the value found and what was expected.
void validate(const ArenaOptions& options);

/// Reads the defaults from the environment; `arena_defaults()` keeps the values of the first call.
detail::ArenaDefaults defaults_from_environment();

/// The blocks of one arena that handles own, for arenas with checks. Thread-safe.
class LivingHandles : public base::Lockable {
public:
    struct Block {
        std::size_t offset;
        std::size_t bytes;
    };

    /// Throws std::bad_alloc.
    void add(Block block) {
        const std::lock_guard guard(mutex_);
        blocks_.insert_or_assign(block.offset, block.bytes);
    }
    void remove(std::size_t offset) noexcept {
        const std::lock_guard guard(mutex_);
        blocks_.erase(offset);
    }
    /// Returns the first block that ends above `offset`.
    std::optional<Block> first_above(std::size_t offset) const noexcept {
        const std::lock_guard guard(mutex_);
        auto at = blocks_.lower_bound(offset);
        if (at != blocks_.begin()) {
            const auto before = std::prev(at);
            if (before->first + before->second > offset) at = before;
        }
        if (at == blocks_.end()) return std::nullopt;
        return Block{at->first, at->second};
    }

private:
    std::map<std::size_t, std::size_t> blocks_;  // bytes by offset
};

/// The only thread that may use an arena of one thread (Sharing::one_thread). Checks nothing if the
/// options share the arena or leave out the checks of calls.
class OwnerThread {
public:
    /// `options` outlives this.
    explicit OwnerThread(const ArenaOptions& options) noexcept : options_(options) {}

    /// Stops the program if the calling thread is not the one that allocated first. `call` names
    /// the function in the message.
    void check(const char* call) const noexcept {
        if (!is_checked()) return;
        const std::thread::id owner = owner_.load(std::memory_order_relaxed);
        if (owner == std::thread::id() || owner == std::this_thread::get_id()) return;
        events::stop_at_misuse(
            {.kind = events::MisuseKind::wrong_thread, .owner = options_.name},
            "%s: arena '%s' belongs to one thread (Sharing::one_thread), and another one "
            "used it before",
            call, options_.name.c_str());
    }
    /// Checks the thread of an allocation. The first thread that allocates becomes the owner.
    void check_allocating() noexcept {
        if (!is_checked()) return;
        // Relaxed: only the identity matters, no other memory depends on it.
        std::thread::id none;
        owner_.compare_exchange_strong(none, std::this_thread::get_id(), std::memory_order_relaxed);
        check("allocate");
    }

private:
    bool is_checked() const noexcept {
        return base::checks_calls(options_.checks) && options_.sharing == Sharing::one_thread;
    }

    const ArenaOptions& options_;
    std::atomic<std::thread::id> owner_ = std::thread::id();
};

}  // namespace tensorpool::arena

namespace tensorpool::detail {

/// Returns the arena with its functions, as handles refer to it.
SourceLink link_to(Arena& arena) noexcept;

/// The state of an Arena, except for the words that every allocation reads.
///
/// Blocks come from claims. A claim is an addition to the arena's top. A claim that ends above
/// `end_` is pending: it owns no memory yet, and is settled under the mutex. If the memory can grow
/// over it, it is granted. If not, the first pending claim, which begins at or below `end_`, sets
/// the top back to its own beginning, with a new generation. That cancels every later claim; their
/// threads see the new generation and start over. An older claim that another thread's growth has
/// covered in between stands. A thread could mistake its generation for the current one only if it
/// slept through 65,536 cancellations.
///
/// The top lies in the record, and the child of a fork gets a copy of the record from before the
/// fork. The copy must hold everything that other threads were granted until the fork. So a fork
/// closes the arena: it sets the top beyond all memory, which makes each claim a pending one. These
/// claims are cancelled when the fork is over.
class ArenaState final {
    Arena& arena_;
    ArenaOptions options_;
    ArenaStatistics::Kind kind_;

public:
    ArenaState(Arena& arena, ArenaOptions options, ArenaStatistics::Kind kind);
    ~ArenaState();

    const ArenaOptions& options() const noexcept { return options_; }
    const char* name() const noexcept { return options_.name.c_str(); }
    bool is_growing() const noexcept { return kind_ == ArenaStatistics::Kind::growing; }
    bool is_in_buffer() const noexcept { return kind_ == ArenaStatistics::Kind::buffer; }
    bool is_measuring() const noexcept { return kind_ == ArenaStatistics::Kind::measuring; }
    /// Returns a number that no other arena of the process has or had.
    std::uint64_t id() const noexcept { return id_; }

    std::size_t capacity() const noexcept {
        const std::size_t committed = totals.capacity_bytes.load(std::memory_order_relaxed);
        // The last page may reach beyond a limit that is not a whole number of pages.
        const std::size_t limit = totals.limit_bytes.load(std::memory_order_relaxed);
        return is_growing() ? std::min(committed, limit) : committed;
    }
    void record_capacity() const noexcept { events::record_capacity(id_, totals.capacity_bytes); }
    /// Returns the peak of the bytes in use, given that `used` bytes are in use now.
    std::size_t peak(std::size_t used) const noexcept {
        return std::max(used, totals.peak_used_bytes.load(std::memory_order_relaxed));
    }

    /// Calls the owner's callback, if there is one.
    void notify(ArenaEvent::Kind kind, std::size_t bytes, const char* limit = "") const noexcept {
        if (!options_.on_event) return;
        options_.on_event({.kind = kind,
                           .arena = name(),
                           .bytes = bytes,
                           .used = arena_.used(),
                           .capacity = capacity(),
                           .limit = limit});
    }
    /// The bytes behind what was requested that belong to a block too. Tools close the memory
    /// behind what was requested, and released memory.
    std::size_t padding() const noexcept {
        const bool is_hardened =
            options_.checks == Checks::hardened && !platform::has_memory_tool();
        return is_hardened ? arena::CheckedBlocks::padding : 0;
    }
    /// Begins the checks of a block, if it has any.
    void begin_checks(std::byte* block, std::size_t bytes) noexcept {
        if (checked == nullptr) return;
        checked->begin(static_cast<std::size_t>(block - arena_.base_),
                       {.begin = reinterpret_cast<char*>(block),
                        .requested = bytes,
                        .bytes = base::align_up(bytes + padding(), arena_.alignment())});
    }
    /// Counts a refused request and puts it on the timeline.
    void count_refusal(std::size_t bytes, const base::Refusal& refusal) noexcept {
        const LimitKind limit = events::limit_kind(refusal);
        totals.count_refusal();
        events::write_entry(events::refusal_kind(limit), limit, bytes, options_.name);
        fold_record();
    }
    /// Counts a refused request, notifies the owner, and returns nullptr.
    void* refuse(std::size_t bytes, const arena::Attempt& attempt) noexcept {
        count_refusal(bytes, attempt.refusal);
        notify(ArenaEvent::Kind::refusal, bytes, attempt.refusal.limit);
        return nullptr;
    }
    /// Returns whether `claim` was cancelled. REQUIRES: the caller holds the mutex.
    bool is_cancelled(std::uint64_t claim) const noexcept {
        return cancelled_.contains(static_cast<std::uint16_t>(claim >> Arena::offset_bits),
                                   claim & Arena::offset_mask);
    }
    /// Cancels all claims that begin at `begin` or above, and returns the new top. REQUIRES: the
    /// caller holds the mutex.
    std::uint64_t cancel_from(std::size_t begin) noexcept {
        cancelled_.cancel_from(begin);
        changes.announce();
        return std::uint64_t{cancelled_.generation()} << Arena::offset_bits | begin;
    }
    /// Puts a growth or a give-back on the timeline, and reports it to a recorder. REQUIRES: the
    /// caller holds the mutex, or no other thread knows the arena yet.
    void note(EntryKind kind, std::size_t bytes) noexcept {
        events::write_entry(kind, LimitKind::none, bytes, options_.name);
        record.fold();
        record_capacity();
    }
    /// Updates the sums that stand for this arena if its record did not fit into the segment.
    void fold_record() noexcept {
        if (record.is_in_segment()) return;
        const std::lock_guard guard(mutex);
        record.fold();
    }
    [[noreturn]] void fail(std::size_t bytes, const arena::Attempt& attempt) const {
        AllocationFailure failure =
            base::failure_of(attempt.refusal, bytes, arena_.used(), capacity());
        const limits::BudgetLines lines(attempt.budget);
        failure.details = lines.c_str();
        throw AllocationError(name(), failure);
    }

    /// Locks and unlocks the arena around a fork, so that no thread is in the middle of a growth or
    /// of the register.
    void lock() noexcept {
        mutex.lock();
        if (handles != nullptr) handles->lock();
        if (checked != nullptr) checked->lock();
        if (objects != nullptr) objects->lock();
        close_top();
    }
    void unlock() noexcept {
        open_top();
        if (objects != nullptr) objects->unlock();
        if (checked != nullptr) checked->unlock();
        if (handles != nullptr) handles->unlock();
        mutex.unlock();
    }
    /// An offset beyond all memory, set in the top while another thread forks: no claim is granted
    /// then.
    static constexpr std::uint64_t closed_by_fork = std::uint64_t{1} << (Arena::offset_bits - 1);
    /// Cancels pending claims in the child of a fork, which does not have the threads that made
    /// them.
    void cancel_pending_claims() noexcept {
        open_top();
        const std::uint64_t top = record->words.used.load(std::memory_order_relaxed);
        const std::size_t end = arena_.end_.load(std::memory_order_relaxed);
        if ((top & Arena::offset_mask) <= end) return;
        // Only the thread of the first pending claim knew where the claim began, so a part below
        // the end may be lost. Blocks end at multiples of the alignment.
        const std::size_t granule = options_.alignment;
        record->words.used.store(cancel_from(base::align_down(end, granule)),
                                 std::memory_order_relaxed);
    }

    std::mutex mutex;  ///< guards growth and the settling of pending claims
    arena::ArenaChanges changes;
    arena::OwnerThread owner{options_};
    arena::OwnedArenaRecord record;
    statistics::ArenaTotals& totals = record->totals;
    arena::ArenaMemory memory{totals, BudgetAccess::node_of(options_.budget)};
    /// The releases, and the blocks at the top that handles returned. Makes marks stale. Written
    /// under the mutex, or by a release, which runs alone.
    arena::ReleaseHistory history;
    /// The releases alone, which make handles outdated.
    arena::ReleaseHistory phases;
    SourceLink link;                                 ///< what handles refer to
    std::unique_ptr<arena::LivingHandles> handles;   ///< null without checks
    std::unique_ptr<arena::CheckedBlocks> checked;   ///< null unless the arena is hardened
    std::unique_ptr<arena::ObjectRegister> objects;  ///< null: no register is kept
    // Owned by the registry, under its mutex.
    ArenaState* next_of_all = nullptr;
    std::size_t quick_bytes = 0;
    /// Opens or closes the inline path of the arena.
    void show_quick_path(bool shown) noexcept {
        arena_.quick_bytes_.store(shown ? quick_bytes : 0, std::memory_order_relaxed);
    }

private:
    // The end of such a handle would touch the arena, so the program cannot go on.
    void check_no_handle_left() const noexcept {
        const auto block = handles == nullptr ? std::nullopt : handles->first_above(0);
        if (!block) return;
        const void* const address = arena_.base_ + block->offset;
        events::stop_at_misuse({.kind = events::MisuseKind::outlived_owner,
                                .pointer = address,
                                .size = block->bytes,
                                .owner = options_.name},
                               "the end of arena '%s': a handle owns the block of %zu B at %p; "
                               "expected the handle to end before the arena",
                               name(), block->bytes, address);
    }
    // An arena of one thread has no claims, and a fork cannot know what its thread is doing.
    void close_top() noexcept {
        if (options_.sharing == Sharing::one_thread) return;
        const std::size_t end = arena_.end_.load(std::memory_order_relaxed);
        std::uint64_t top = record->words.used.load(std::memory_order_relaxed);
        do {
            // With claims pending the arena is closed already: their threads and all others wait
            // for the mutex.
            if ((top & Arena::offset_mask) > end) return;
        } while (!record->words.used.compare_exchange_weak(top, top | closed_by_fork,
                                                           std::memory_order_acquire));
        closed_at_ = top & Arena::offset_mask;
    }
    void open_top() noexcept {
        if (closed_at_ == open) return;
        // Release: passes on what `close_top` acquired, as in ArenaClaims::granted.
        record->words.used.store(cancel_from(std::exchange(closed_at_, open)),
                                 std::memory_order_release);
    }

    static constexpr std::size_t open = SIZE_MAX;

    std::uint64_t id_;
    std::size_t closed_at_ = open;  // bytes in use when a fork closed the arena
    arena::CancelledClaims cancelled_;
};

class ArenaState;
}  // namespace tensorpool::detail

namespace tensorpool::arena {

/// All living arenas, so that a fork finds none of them in the middle of a growth. There is one
/// registry in the process.
class ArenaRegistry : public base::Registry<detail::ArenaState> {
public:
    /// Sets the largest request, in bytes, that the inline path of the arena takes.
    void set_quick_bytes(detail::ArenaState& arena, std::size_t bytes) noexcept;
    /// Lets the inline paths serve allocations, or makes every allocation take the slow path.
    void show_quick_paths(bool shown) noexcept {
        const std::lock_guard guard(mutex_);
        hidden_ = !shown;
        for_each([shown](detail::ArenaState& one) { one.show_quick_path(shown); });
    }

    void before_fork() noexcept {
        mutex_.lock();
        for_each([](detail::ArenaState& arena) { arena.lock(); });
    }
    void after_fork_in_parent() noexcept {
        for_each([](detail::ArenaState& arena) { arena.unlock(); });
        mutex_.unlock();
    }
    void after_fork_in_child() noexcept {
        for_each([](detail::ArenaState& arena) { arena.cancel_pending_claims(); });
        after_fork_in_parent();
    }

private:
    bool hidden_ = false;
};

inline ArenaRegistry& arena_registry() noexcept {
    return base::the_only<ArenaRegistry>.get();
}

}  // namespace tensorpool::arena

namespace tensorpool::detail {

// The largest size that can be rounded up to any alignment and still be compared with an offset.
inline constexpr std::size_t max_block_bytes = std::size_t{1} << 47;

/// Serves the allocations that the inline path of an arena does not finish: claims that passed the
/// end, and requests that the inline path does not take. Grows the arena for them. ArenaState
/// describes claims.
class ArenaClaims {
public:
    explicit ArenaClaims(Arena& arena) noexcept : arena_(arena), state_(*arena.state_) {}

    /// Allocates `bytes` bytes. Returns nullptr, with the reason in `attempt`, if that fails.
    void* allocate(std::size_t bytes, std::size_t alignment, arena::Attempt& attempt) noexcept {
        events::look_for_recorder();
        return recorded(find_range(bytes, alignment, attempt), bytes, alignment);
    }
    /// Settles a `claim` of `bytes` bytes that passed the end: returns its block, or nullptr with
    /// the reason in `attempt`.
    void* settle(std::uint64_t claim, std::size_t bytes, arena::Attempt& attempt) noexcept {
        void* const block = granted(claim, bytes, attempt);
        // Called only after the claim is settled: other threads wait for the outcome, and an answer
        // to a recorder takes time.
        events::look_for_recorder();
        return recorded(block, bytes, arena_.alignment());
    }
    struct Growth {
        bool is_met = false;
        std::size_t bytes = 0;  // committed for the growth
    };
    /// Grows until `end` bytes may be used. REQUIRES: the caller holds the mutex.
    Growth grow_to(std::size_t end, const GrowthPolicy& growth, arena::Attempt& attempt) noexcept {
        if (!state_.is_growing()) {
            attempt.refusal = {state_.is_measuring() ? "the measuring range" : "the buffer",
                               arena_.end_.load(std::memory_order_relaxed)};
            attempt.refusal.needed_limit = end;
            return {};
        }
        arena::ArenaMemory& memory = state_.memory;
        const bool begins = !memory.is_charged();
        if (!memory.charge(attempt)) return {};
        const std::size_t before = memory.end();
        const std::size_t grown = end <= before ? 0 : memory.grow_to(end, growth, attempt);
        platform::mark_closed(memory.base() + before, memory.end() - before);
        // Release: a thread that reads the new end sees the memory committed.
        arena_.end_.store(memory.end(), std::memory_order_release);
        if (grown != 0) state_.note(EntryKind::growth, grown);
        if (grown != 0 || begins) state_.changes.announce();
        return {end <= memory.end(), grown};
    }
    /// Notifies the arena's owner of a growth. REQUIRES: the caller does not hold the mutex.
    void notify(Growth growth) const noexcept {
        if (growth.bytes != 0) state_.notify(ArenaEvent::Kind::growth, growth.bytes);
    }
    /// Replaces the top `seen` by `top`. Returns false, with `seen` updated, if the top was another
    /// value.
    bool replace_top(std::uint64_t& seen, std::uint64_t top) noexcept {
        // Acquire: pairs with the end of a handle that returned the bytes above `seen`.
        if (arena_.shared_)
            return arena_.words_->used.compare_exchange_weak(seen, top, std::memory_order_acquire);
        arena_.words_->used.store(top, std::memory_order_relaxed);
        return true;
    }

private:
    struct Range {
        std::size_t begin;
        std::size_t end;
    };

    void count() const noexcept {
        if (arena_.shared_) {
            count_allocation(*arena_.words_);
        } else {
            add(arena_.words_->allocations[0], 1);
        }
    }
    void* recorded(void* block, std::size_t bytes, std::size_t alignment) const noexcept {
        if (block != nullptr) {
            count();
            state_.begin_checks(static_cast<std::byte*>(block), bytes);
        }
        if (block != nullptr && !state_.is_measuring()) {
            platform::mark_allocated(
                {block, bytes, base::align_up(bytes, arena_.alignment()), state_.is_in_buffer()});
        }
        const auto action = block == nullptr ? TraceAction::refuse : TraceAction::arena_allocate;
        events::record(action, state_.id(), block, bytes, alignment);
        return block;
    }
    // Claims bytes only after checking that there is room. Used for sizes and alignments that the
    // inline path does not take, and for try_allocate, which must not throw.
    void* find_range(std::size_t bytes, std::size_t alignment, arena::Attempt& attempt) noexcept {
        state_.owner.check_allocating();
        const std::size_t most = std::min(state_.options().max_allocation, max_block_bytes);
        if (bytes > most || alignment > max_block_bytes) {
            attempt.refusal = bytes > most
                                  ? base::Refusal{"max_allocation", most}
                                  : base::Refusal{"the largest alignment", max_block_bytes};
            if (bytes > most && bytes <= max_block_bytes) attempt.refusal.needed_limit = bytes;
            return state_.refuse(bytes, attempt);
        }
        for (;;) {
            const std::size_t end = arena_.end_.load(std::memory_order_acquire);
            std::uint64_t top = arena_.words_->used.load(std::memory_order_relaxed);
            const Range range = range_at(top & Arena::offset_mask, bytes, alignment);
            if (range.end <= end) {
                if (replace_top(top, (top & ~Arena::offset_mask) | range.end))
                    return arena_.base_ + range.begin;
            } else if (!make_room(range.end, top, attempt) && !attempt.may_retry()) {
                return state_.refuse(bytes, attempt);
            }
        }
    }
    void* granted(std::uint64_t claim, std::size_t bytes, arena::Attempt& attempt) noexcept {
        const std::size_t begin = claim & Arena::offset_mask;
        const std::size_t end = begin + base::align_up(bytes, arena_.alignment());
        std::unique_lock lock(state_.mutex);
        while (!state_.is_cancelled(claim)) {
            if (end <= arena_.end_.load(std::memory_order_relaxed)) return arena_.base_ + begin;
            if (const Growth growth = grow_to(end, state_.options().growth, attempt);
                growth.is_met) {
                lock.unlock();
                notify(growth);
                return arena_.base_ + begin;
            }
            if (begin <= arena_.end_.load(std::memory_order_relaxed)) {
                // Release: passes on what the claim acquired, since a plain store ends the sequence
                // of exchanges that began with the end of a handle.
                arena_.words_->used.store(state_.cancel_from(begin), std::memory_order_release);
                lock.unlock();
                // Holders are asked without the mutex: other threads can settle their claims.
                if (attempt.may_retry()) return find_range(bytes, arena_.alignment(), attempt);
                return state_.refuse(bytes, attempt);
            }
            // The first pending claim decides the outcome of all of them.
            state_.changes.wait(lock);
            lock.lock();
        }
        lock.unlock();
        return find_range(bytes, arena_.alignment(), attempt);
    }
    Range range_at(std::size_t top, std::size_t bytes, std::size_t alignment) const noexcept {
        const auto base = reinterpret_cast<std::uintptr_t>(arena_.base_);
        const std::size_t size = base::align_up(bytes + state_.padding(), arena_.alignment());
        const std::size_t begin = base::align_up(base + top, alignment) - base;
        std::size_t end = begin + size;
        // The base of a real arena is known to be a multiple of 2 MiB. For larger alignments the
        // worst case is counted.
        if (state_.is_measuring() && alignment > platform::huge_page_bytes) {
            end = std::max(end, top + (alignment - arena_.alignment()) + size);
        }
        return {begin, end};
    }
    // Grows to `end` for a caller that claimed nothing and read the top as `seen`. Returns false if
    // that is refused, true if the caller should look again.
    bool make_room(std::size_t end, std::uint64_t seen, arena::Attempt& attempt) noexcept {
        std::unique_lock lock(state_.mutex);
        if (end <= arena_.end_.load(std::memory_order_relaxed)) return true;
        if (const Growth growth = grow_to(end, state_.options().growth, attempt); growth.is_met) {
            lock.unlock();
            notify(growth);
            return true;
        }
        const std::uint64_t top = arena_.words_->used.load(std::memory_order_relaxed);
        if ((top & Arena::offset_mask) > arena_.end_.load(std::memory_order_relaxed)) {
            state_.changes.wait(lock);  // pending claims: they may be cancelled
            return true;
        }
        return top != seen;
    }

    Arena& arena_;
    ArenaState& state_;
};

}  // namespace tensorpool::detail
