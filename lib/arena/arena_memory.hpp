#pragma once

#include "arena/arena_table.hpp"
#include "limits/commit_budget.hpp"
#include "limits/ladder.hpp"

namespace tensorpool::arena {

using OwnedArenaRecord = statistics::OwnedRecord<statistics::ArenaRecord>;

/// Makes the record of an arena, or of the scratch of `thread`. Throws AllocationError if the
/// system has no memory for it.
inline OwnedArenaRecord make_record(std::string_view name, ArenaStatistics::Kind kind,
                                    std::uint64_t thread) {
    const auto describe = [&](statistics::ArenaRecord& record) {
        record.kind.store(static_cast<std::uint64_t>(kind), std::memory_order_relaxed);
        record.thread.store(thread, std::memory_order_relaxed);
    };
    OwnedArenaRecord record(name, describe);
    if (!record) {
        throw AllocationError(std::string(name).c_str(), sizeof(statistics::ArenaRecord), 0, 0,
                              "memory for its record", platform::available_address_space());
    }
    return record;
}

/// The growths and cancellations of an arena, for threads that wait for one.
class ArenaChanges {
public:
    /// Wakes the threads that wait. REQUIRES: the caller holds the arena's mutex.
    void announce() noexcept {
        count_.fetch_add(1, std::memory_order_relaxed);
        count_.notify_all();
    }
    /// Waits for a change. `lock` holds the arena's mutex, and is released.
    void wait(std::unique_lock<std::mutex>& lock) const noexcept {
        const std::uint32_t seen = count_.load(std::memory_order_relaxed);
        lock.unlock();
        count_.wait(seen, std::memory_order_relaxed);
    }

private:
    std::atomic<std::uint32_t> count_ = 0;
};

using base::Refusal;

/// One request for memory: why it was refused last, and how it meets the limits of budgets.
struct Attempt {
    Refusal refusal = {};
    limits::BudgetRequest budget = {};
    bool asked_pools = false;

    /// Asks the holders of a budget that refused, or once the pools for what the system lacks.
    /// Returns whether the same request may succeed now. The caller holds no lock.
    bool may_retry() noexcept {
        if (budget.is_refused()) return budget.may_retry();
        return !std::exchange(asked_pools, true) && limits::ladder().gives_for(refusal);
    }
};

/// Growth by what is needed, without a surplus.
inline constexpr GrowthPolicy no_surplus{.step = 0, .factor = 0.0};

/// The address range of one arena: reserved as a whole, committed from its front. REQUIRES: calls
/// of functions that change it do not overlap.
class ArenaMemory {
public:
    /// Charges what it commits to `budget`, unless that is nullptr, and to the commit budget.
    explicit ArenaMemory(statistics::ArenaTotals& totals,
                         limits::BudgetNode* budget = nullptr) noexcept
        : totals_(totals), account_(limits::commit_budget(), budget) {}
    ~ArenaMemory();
    ArenaMemory(const ArenaMemory&) = delete;
    ArenaMemory& operator=(const ArenaMemory&) = delete;

    /// Reserves `max_capacity` bytes. If it is 0, reserves twice the total memory, or the arena's
    /// share of the addresses if many arenas are alive; less if the address space is limited. The
    /// range begins at a multiple of `alignment` and of 2 MiB. Returns false if the system refuses.
    [[nodiscard]] bool reserve(std::size_t max_capacity, std::size_t alignment) noexcept;

    /// Commits memory until `end` bytes from the base may be used, with a surplus by the policy.
    /// Returns the bytes committed; 0 if the growth is refused, in which case nothing changed.
    std::size_t grow_to(std::size_t end, const GrowthPolicy& growth, Attempt& attempt) noexcept;
    /// Takes the committed memory off the budgets until `charge`; until then it cannot be used. An
    /// arena may be constructed and never used.
    void charge_later() noexcept {
        uncharged_ = committed_;
        record_charge();
        account_.give_back(uncharged_);
    }
    bool is_charged() const noexcept { return uncharged_ == 0; }
    /// Charges the committed memory to the budgets. Returns false if that is refused, in which case
    /// nothing changed.
    bool charge(Attempt& attempt) noexcept;
    /// Populates the pages of the first `bytes` bytes, which are committed.
    void touch(std::size_t bytes) noexcept;
    /// Gives whole pages above `offset` back to the system. Returns their bytes.
    std::size_t give_back_above(std::size_t offset) noexcept;

    std::byte* base() const noexcept { return base_; }
    /// Returns how many bytes from the base are committed and may be used: at most the limit.
    std::size_t end() const noexcept {
        if (!is_charged()) return 0;
        return committed_ < limit_ ? committed_ : limit_;
    }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t reserved() const noexcept { return reserved_; }

private:
    std::size_t wanted(std::size_t needed, const GrowthPolicy& growth) const noexcept;
    [[nodiscard]] bool reserve_limit(std::size_t alignment) noexcept;
    [[nodiscard]] bool commit(std::size_t bytes) noexcept {
        if (!platform::commit(base_ + committed_, bytes)) return false;
        committed_ += bytes;
        return true;
    }
    void record_charge() noexcept;
    void note_refusal(std::size_t needed, bool system_refused, Attempt& attempt) const noexcept {
        attempt.refusal = account_.refuse(needed, system_refused, attempt.budget);
        attempt.refusal.missing = 0;  // counts the pages of a pool only
    }

    statistics::ArenaTotals& totals_;
    limits::CommitAccount account_;
    std::byte* base_ = nullptr;
    std::size_t reserved_ = 0;
    std::size_t limit_ = 0;
    const char* limit_name_ = "max_capacity";
    std::size_t committed_ = 0;  // whole pages
    std::size_t uncharged_ = 0;  // either all committed bytes or 0
    bool is_one_of_many_ = false;
};

}  // namespace tensorpool::arena
