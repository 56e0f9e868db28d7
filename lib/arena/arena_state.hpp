#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <thread>

#include <tensorpool/arena.hpp>
#include <tensorpool/timeline.hpp>

#include "arena/arena_memory.hpp"
#include "arena/arena_record.hpp"
#include "arena/cancelled_claims.hpp"
#include "arena/object_register.hpp"
#include "arena/release_history.hpp"
#include "statistics/metrics/arena_metrics.hpp"
#include "statistics/sums/snapshot_sources.hpp"

namespace tensorpool::detail {

/// What stands behind an Arena, apart from the words that every allocation reads.
///
/// Blocks come from claims: an addition to the arena's top. A claim that ends above `end_` is
/// pending, and nobody has got memory there; it is settled under the mutex. Either the memory grows
/// over it, or, where it cannot, the first pending claim, which begins at or below `end_`, puts
/// the top back to its beginning with another generation: that cancels every later one, whose
/// threads see it by the generation and begin again. A claim from before, over which another
/// thread's growth went meanwhile, stands. Only a claim of a thread that slept through 65,536
/// cancellations could take its own generation for the present one.
///
/// The top lies in the record, of which the child of a fork gets a copy from before the fork. So
/// that the copy has all that other threads were granted until then, a fork closes the arena: an
/// offset beyond all memory makes each claim a pending one. They are cancelled when it is over.
class ArenaState final : public statistics::SnapshotSource {
    Arena& arena_;
    ArenaOptions options_;
    ArenaStatistics::Kind kind_;

public:
    ArenaState(Arena& arena, ArenaOptions options, ArenaStatistics::Kind kind);
    ~ArenaState();

    const ArenaOptions& options() const noexcept { return options_; }
    const char* name() const noexcept { return options_.name.c_str(); }
    bool is_growing() const noexcept { return kind_ == ArenaStatistics::Kind::growing; }
    bool is_measuring() const noexcept { return kind_ == ArenaStatistics::Kind::measuring; }
    /// Unlike that of any other arena of the process, living or dead.
    std::uint64_t id() const noexcept { return id_; }

    void add_to(Snapshot& snapshot) const override;
    Identity identify() const noexcept override;
    ArenaStatistics statistics() const noexcept;
    std::size_t capacity() const noexcept override;
    /// With `used` bytes in use now.
    std::size_t peak(std::size_t used) const noexcept;

    /// With checks, stops the program where another thread uses a one-thread arena than the one
    /// that allocated first.
    void check_thread(const char* call) const noexcept;
    /// The same for an allocation, which makes the calling thread that one if there is none yet.
    void check_allocating_thread() noexcept;
    void tell(ArenaEvent::Kind kind, std::size_t bytes, const char* limit = "") const noexcept;
    /// Counts that a request was not met, and puts it on the timeline.
    void count_refusal(std::size_t bytes, const base::Refusal& refusal) noexcept;
    /// Counts and tells that a request was not met. Returns nullptr, for who hands that on.
    void* refuse(std::size_t bytes, const base::Refusal& refusal) noexcept;
    /// Under the mutex.
    bool is_cancelled(std::uint64_t claim) const noexcept;
    /// Under the mutex: cancels all claims that begin at `begin` or above, and returns what the top
    /// becomes.
    std::uint64_t cancel_from(std::size_t begin) noexcept;
    /// Puts a growth or what was given back on the timeline, and tells a recorder. Under the mutex,
    /// or while nobody else is there.
    void note(EntryKind kind, std::size_t bytes) noexcept;
    /// Where the record has no place: brings it up to date where it is added up.
    void fold_record() noexcept;
    /// Wakes who waits for a growth or a cancellation. Under the mutex.
    void announce_change() noexcept;
    /// Waits for a growth or a cancellation. `lock` holds the mutex, and is given up.
    void wait_for_change(std::unique_lock<std::mutex>& lock) const noexcept;
    [[noreturn]] void fail(std::size_t bytes, const base::Refusal& refusal) const;

    /// Around a fork: nobody is in the middle of a growth or of the register.
    void lock() noexcept;
    void unlock() noexcept;
    /// An offset beyond all memory, set in the top while a fork is under way in another thread:
    /// then no claim is granted.
    static constexpr std::uint64_t closed_by_fork = std::uint64_t{1} << (Arena::offset_bits - 1);
    /// In the child of a fork, whose other threads are gone with their pending claims.
    void cancel_pending_claims() noexcept;

    std::mutex mutex;  ///< growth, and what becomes of pending claims
    /// Counts growths and cancellations, for who waits for one.
    std::atomic<std::uint32_t> changes = 0;
    arena::OwnedArenaRecord record;
    statistics::ArenaTotals& totals = record->totals;
    arena::ArenaMemory memory{totals};
    arena::ReleaseHistory history;
    std::unique_ptr<arena::ObjectRegister> objects;  ///< null: none is kept

    // Of the registry, under its mutex.
    ArenaState* next_of_all = nullptr;
    std::size_t quick_bytes = 0;
    /// Whether the arena's inline path takes what it can.
    void show_quick_path(bool shown) noexcept;

private:
    void close_top() noexcept;
    void open_top() noexcept;

    static constexpr std::size_t open = SIZE_MAX;

    std::uint64_t id_;
    std::size_t closed_at_ = open;  // what was in use when a fork closed the arena
    arena::CancelledClaims cancelled_;
    std::atomic<std::thread::id> owner_ = std::thread::id();
};

}  // namespace tensorpool::detail
