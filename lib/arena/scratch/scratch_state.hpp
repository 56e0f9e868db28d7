#pragma once

#include <iterator>
#include <unordered_map>

#include <tensorpool/scratch.hpp>
#include <tensorpool/scratch_report.hpp>

#include "arena/arena_memory.hpp"
#include "arena/checked_blocks.hpp"
#include "arena/release_history.hpp"
#include "events/recorder_hooks.hpp"

namespace tensorpool::detail {

/// What is known of an operator. Relaxed throughout: the values publish nothing else.
struct ScratchOperator {
    std::atomic<std::uint64_t> calls = 0;
    std::atomic<std::uint64_t> peak_bytes = 0;
    std::atomic<std::uint64_t> need_bytes = 0;  ///< the peak, with room for alignment
    std::atomic<std::uint64_t> growths = 0;
    std::atomic<std::uint64_t> grown_bytes = 0;
};

}  // namespace tensorpool::detail

namespace tensorpool::arena {

/// All operators of the process by name. They are added and never removed, so a pointer to one
/// stays valid. Thread-safe. There is one table in the process.
class ScratchOperators : public base::Lockable {
public:
    struct Entry {
        std::string_view name;  ///< lives as long as the operator
        detail::ScratchOperator* found;
    };
    /// Returns the operator `name`, adding it if it is new. Throws std::bad_alloc.
    Entry find_or_add(std::string_view name) {
        const std::lock_guard guard(mutex_);
        auto at = operators_.find(name);
        if (at == operators_.end()) at = operators_.try_emplace(std::string(name)).first;
        return {at->first, &at->second};
    }
    /// Returns the name of an operator; "" if it is nullptr or unknown.
    std::string name_of(const detail::ScratchOperator* known) const;
    ScratchReport report() const;

private:
    std::map<std::string, detail::ScratchOperator, std::less<>> operators_;
};

ScratchOperators& scratch_operators();

/// The operators that one thread has looked up, so that it takes the lock once for each.
class KnownOperators {
public:
    /// Returns the operator `name`; nullptr if there is no memory for it.
    detail::ScratchOperator* find(std::string_view name) noexcept;

private:
    std::unordered_map<std::string_view, detail::ScratchOperator*> known_;
};

/// Returns the size of the chunk that replaces several ones after a run that needed `need` bytes.
std::size_t joined_bytes(std::size_t need) noexcept;

/// The chunks of one scratch, in the order of their use. Chunks after the present one hold nothing.
/// Used by one thread, but consistent at a fork in another thread.
class ScratchChunks {
public:
    struct Chunk {
        std::byte* begin = nullptr;
        std::byte* end = nullptr;
        /// Bytes that were in use in the earlier chunks when the use of this one began.
        std::size_t below = 0;
        /// What is charged for it, besides the commit budget: that of a scope, or nullptr.
        limits::BudgetNode* budget = nullptr;

        std::size_t bytes() const noexcept { return static_cast<std::size_t>(end - begin); }
    };

    explicit ScratchChunks(statistics::ArenaTotals& totals) noexcept : totals_(totals) {}
    ~ScratchChunks();
    ScratchChunks(const ScratchChunks&) = delete;
    ScratchChunks& operator=(const ScratchChunks&) = delete;

    /// Makes memory of the caller the only chunk; no other is ever added.
    void set_buffer(std::byte* begin, std::byte* end);
    bool is_buffer() const noexcept { return is_buffer_; }

    bool empty() const noexcept { return chunks_.empty(); }
    /// Returns the chunk in use. REQUIRES: not empty.
    const Chunk& present() const noexcept { return chunks_[present_]; }
    std::size_t present_number() const noexcept { return present_; }
    /// Returns whether `p` lies in one of the chunks.
    bool contain(const void* p) const noexcept;
    bool is_one() const noexcept { return chunks_.size() == 1; }
    /// Returns whether the next chunk has room for `bytes` bytes from a multiple of `alignment`.
    bool next_has(std::size_t bytes, std::size_t alignment) const noexcept;

    /// Adds a chunk of `wanted` bytes, or of at least `needed` if memory is short, that begins at a
    /// multiple of `alignment`. It replaces all chunks after the present one. If there was none,
    /// the new chunk becomes the present one. Returns its bytes; 0 if it is refused, in which case
    /// nothing changed. A scope of a budget is charged for it; its holders are not asked.
    std::size_t add_next(std::size_t needed, std::size_t wanted, std::size_t alignment,
                         Attempt& attempt) noexcept;
    /// Makes the next chunk the present one. `below` bytes are in use in the earlier chunks.
    void go_on(std::size_t below) noexcept { chunks_[++present_].below = below; }
    /// Marks all blocks above this position as freed, for a memory tool.
    void mark_freed_above(std::size_t chunk, std::size_t used) const noexcept;
    void go_back_to(std::size_t number) noexcept { present_ = number; }
    /// Gives the present chunk back to the system; the next one replaces it. REQUIRES: there is a
    /// next chunk.
    void drop_present() noexcept;
    /// Gives the chunks after the present one back to the system. Returns their bytes.
    std::size_t drop_spares() noexcept { return chunks_.empty() ? 0 : drop_from(present_ + 1); }
    /// Gives all chunks back to the system, except a buffer of the caller. Returns their bytes.
    std::size_t drop_all() noexcept {
        present_ = 0;
        return is_buffer_ ? 0 : drop_from(0);
    }

private:
    bool append(void* memory, std::size_t bytes) noexcept;
    void give_back(const Chunk& chunk) noexcept;
    std::size_t drop_from(std::size_t first) noexcept;

    statistics::ArenaTotals& totals_;
    std::vector<Chunk> chunks_;
    std::size_t present_ = 0;
    bool is_buffer_ = false;
};

/// A block of a scratch that a handle owns, and the position to which the handle's end returns.
struct ScratchHandle {
    const void* block = nullptr;
    std::uint64_t serial = 0;  // differs from that of any other handle of the scratch
    std::size_t used_before = 0;
    std::size_t used_after = 0;
    std::size_t chunk = 0;
    std::uint64_t scope = 0;
    std::thread::id thread;
    bool has_ended = false;
};

/// The handles (PooledAllocation) of a scratch whose memory was not released, the last one made on
/// top. One that ends below memory in use waits until that is gone.
///
/// A block may lie where the block of a handle that outlived its memory lay. A serial number tells
/// the two apart; the handle's BlockOwner keeps it in place of the number of releases.
class ScratchHandles {
public:
    /// Adds a handle, and gives it a serial number, which is returned. Throws std::bad_alloc.
    std::uint64_t push(ScratchHandle handle) {
        handle.serial = ++last_serial_;
        handles_.push_back(handle);
        return handle.serial;
    }
    /// Forgets the handles whose memory is released: all from this position on. The ends of those
    /// that live will report it.
    void forget_from(std::size_t used) noexcept {
        while (!handles_.empty() && handles_.back().used_before >= used) handles_.pop_back();
    }
    /// Forgets the handle that owns `block`, wherever it is.
    void forget(const HeldBlock& block) noexcept {
        const auto found = find(block);
        if (found != handles_.rend()) handles_.erase(std::next(found).base());
    }
    /// Ends the handle that owns `block`. Returns why that is misuse; nullptr if it is not.
    const char* end(const HeldBlock& block) noexcept {
        const auto found = find(block);
        if (found == handles_.rend()) {
            return "its memory was released before; expected it to end before its ScratchScope and "
                   "before any release";
        }
        if (found->thread != std::this_thread::get_id()) {
            return "it belongs to another thread; expected it to end on its own";
        }
        found->has_ended = true;
        return nullptr;
    }
    /// Returns the handle that has ended and whose block may be returned in `scope`, with `used`
    /// bytes in use; nullptr if there is none.
    const ScratchHandle* ended_on_top(std::uint64_t scope, std::size_t used) const noexcept {
        if (!is_last_ended()) return nullptr;
        const ScratchHandle& last = handles_.back();
        return last.scope == scope && last.used_after == used ? &last : nullptr;
    }
    /// Returns whether the end of a scope releases the memory of handles, or lets one be returned.
    bool wait_for_scopes(std::uint64_t outside) const noexcept {
        return is_last_ended() || (!handles_.empty() && handles_.back().scope != outside);
    }

private:
    using Handles = std::vector<ScratchHandle>;
    Handles::reverse_iterator find(const HeldBlock& block) noexcept {
        const std::uint64_t serial = block.owner.releases();
        return std::find_if(handles_.rbegin(), handles_.rend(), [&](const auto& handle) {
            return handle.block == block.address && handle.serial == serial && !handle.has_ended;
        });
    }
    bool is_last_ended() const noexcept { return !handles_.empty() && handles_.back().has_ended; }

    std::uint64_t last_serial_ = 0;
    Handles handles_;
};

}  // namespace tensorpool::arena

namespace tensorpool::detail {

/// The state of a Scratch, except for the words that every allocation reads.
class ScratchState final {
public:
    static constexpr std::size_t first_chunk_bytes = std::size_t{512} << 10;

    ScratchState(Scratch& scratch, std::string name, arena::CheckedBlocks::Memory memory);
    ~ScratchState();

    Scratch& scratch() const noexcept { return scratch_; }
    const char* name() const noexcept { return name_.c_str(); }

    std::size_t capacity() const noexcept {
        return totals.capacity_bytes.load(std::memory_order_relaxed);
    }
    void record_capacity() const noexcept {
        events::record_capacity(number, totals.capacity_bytes);
    }
    std::size_t peak() const noexcept {
        return std::max<std::size_t>(totals.peak_used_bytes.load(std::memory_order_relaxed),
                                     record->words.high.load(std::memory_order_relaxed));
    }

    /// Allocates if the present chunk may have no room. Returns nullptr, with the reason in
    /// `attempt`, if that fails.
    void* allocate(std::size_t bytes, std::size_t alignment, arena::Attempt& attempt) noexcept;
    /// Uses memory of the caller in place of chunks.
    void set_buffer(std::span<std::byte> buffer);
    /// Makes room for `bytes` bytes, so that they need no growth. Returns false, with the reason in
    /// `attempt`, if that fails.
    [[nodiscard]] bool prepare(std::size_t bytes, arena::Attempt& attempt) noexcept;

    /// Sets the present chunk and the bytes in use.
    void go_back_to(std::size_t chunk, std::size_t used) noexcept;
    /// Releases everything above a position, and records it.
    void release_to(std::size_t chunk, std::size_t used) noexcept;
    /// Allocates a block for a handle. Throws what Scratch::allocate throws, and std::bad_alloc.
    HeldBlock hold(std::size_t bytes, std::size_t alignment);
    /// Remembers the position at which an allocation begins, for `hold`.
    void note_attempt() noexcept {
        attempt_used_ = scratch_.used();
        attempt_chunk_ = scratch_.chunk_;
    }
    /// Returns the block of a handle that ends, now or once nothing above it is in use. Stops the
    /// program if its memory was released before, or on another thread.
    void end_handle(const HeldBlock& block) noexcept;
    /// Goes back to where a scope began and makes `outer` the innermost one.
    void end_scope(std::size_t chunk, std::size_t used, std::uint64_t outer) noexcept;
    /// Replaces several chunks by one that would have held everything, if nothing is in use.
    void settle_if_unused() noexcept;
    std::size_t trim() noexcept;
    /// Returns the bytes that alignment might have needed, in addition to the bytes in use since
    /// the last joining, if all memory had been one piece.
    std::size_t slack() const noexcept { return slack_; }
    /// Gives back the chunks of a thread that does not exist in the child of a fork. The thread may
    /// have been in the middle of anything, so its records stay as they are.
    void abandon() noexcept {
        events::record(TraceAction::gone, number, nullptr, 0);
        chunks.drop_all();
        record.leave();
    }
    /// Records the new thread number in the child of a fork.
    void belong_to_this_thread() noexcept {
        record->thread.store(platform::current_thread_id(), std::memory_order_relaxed);
    }
    /// Counts a refused request and puts it on the timeline.
    void count_refusal(std::size_t bytes, const base::Refusal& refusal) noexcept;

    arena::OwnedArenaRecord record;
    /// Differs from the number of any other scratch of the process, living or dead; never 0.
    const std::uint64_t number;
    /// The scope number of allocations outside of any scope.
    static constexpr std::uint64_t outside = 0;
    arena::KnownOperators operators;
    /// The operator of the innermost named scope; nullptr for none.
    ScratchOperator* innermost = nullptr;
    statistics::ArenaTotals& totals = record->totals;
    arena::ScratchChunks chunks{totals};
    arena::ReleaseHistory history;
    std::unique_ptr<arena::CheckedBlocks> checked;  ///< null unless TENSORPOOL_CHECKS is `hardened`

    ScratchState* next_of_all = nullptr;  ///< owned by the registry
    /// Opens or closes the inline path of the scratch. May be called by any thread.
    void show_quick_path(bool shown) noexcept;

private:
    [[nodiscard]] bool grow(std::size_t bytes, std::size_t alignment,
                            arena::Attempt& attempt) noexcept;
    void use_present_chunk() noexcept;
    void return_ended_handles() noexcept;
    [[nodiscard]] bool add_chunk(std::size_t needed, std::size_t wanted, std::size_t alignment,
                                 arena::Attempt& attempt) noexcept;

    bool is_ready_for(std::size_t bytes) const noexcept;
    [[nodiscard]] bool make_ready(std::size_t bytes, arena::Attempt& attempt) noexcept;
    void forget_need() noexcept {
        base::raise_to(totals.peak_used_bytes, record->words.high.load(std::memory_order_relaxed));
        record->words.high.store(0, std::memory_order_relaxed);
        prepared_ = 0;
        slack_ = 0;
    }
    void note_changes() noexcept;
    void fold_record() noexcept;

    Scratch& scratch_;
    std::string name_;
    // The largest number of bytes in use for which room was made.
    std::size_t prepared_ = 0;
    std::size_t slack_ = 0;
    // The parts of the totals that are on the timeline.
    std::uint64_t noted_grown_ = 0;
    std::uint64_t noted_given_back_ = 0;
    static const SourceFunctions handle_functions;
    SourceLink link_{&handle_functions, this};  // what handles refer to
    arena::ScratchHandles handles_;
    std::size_t attempt_used_ = 0;
    std::size_t attempt_chunk_ = 0;
};

}  // namespace tensorpool::detail

namespace tensorpool {
class Scratch;
namespace detail {
class ScratchState;
}
}  // namespace tensorpool

namespace tensorpool::arena {

/// The scratches of all threads, and the lock under which each scratch changes its chunks. The lock
/// lets the child of a fork find the chunks consistent and give back those of threads that it does
/// not have. (Other records of such a thread are left alone: the thread may have been in the middle
/// of changing them.) Thread-safe. There is one registry in the process.
class ScratchRegistry : public base::Registry<detail::ScratchState> {
public:
    /// Enters the scratch of the calling thread, which is given back when the thread ends.
    void enter(detail::ScratchState& scratch) noexcept;

    /// Lets the inline paths serve allocations, or makes every allocation take the slow path.
    void show_quick_paths(bool shown) noexcept {
        const std::lock_guard guard(mutex_);
        hidden_ = !shown;
        for_each([shown](detail::ScratchState& one) { one.show_quick_path(shown); });
    }

    void before_fork() noexcept {
        scratch_operators().lock();
        mutex_.lock();
    }
    void after_fork_in_parent() noexcept {
        mutex_.unlock();
        scratch_operators().unlock();
    }
    void after_fork_in_child() noexcept;

private:
    platform::ExitHandler exit_handler() noexcept;

    bool hidden_ = false;
};

inline ScratchRegistry& scratch_registry() noexcept {
    return base::the_only<ScratchRegistry>.get();
}

}  // namespace tensorpool::arena
