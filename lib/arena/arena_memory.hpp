#pragma once

#include "arena/arena_table.hpp"
#include "arena/growth_account.hpp"
#include "limits/ladder.hpp"
#include "platform/tools/memory_probes.hpp"
#include "platform/tools/memory_tools.hpp"

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

/// One request for memory: why it was refused last, and how it meets the limits of budgets.
struct Attempt {
    base::Refusal refusal = {};
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

// Relaxed: it publishes nothing else.
inline constinit std::atomic<std::size_t> arenas_that_share = 0;

// Three quarters of the 128 TiB of addresses that a process has at least. The n-th living arena
// without a maximum capacity gets one part in 16 n of them: ten thousand arenas take 61 % of this
// range, a million 90 %.
inline constexpr std::size_t addresses_for_arenas = (std::size_t{1} << 47) / 4 * 3;

// An offset has 48 bits. One of them is for forks and for threads that claim at the same time and
// pass the end together. No process commits as much as the remaining 47 bits can address.
inline constexpr std::size_t max_reserved_bytes = std::size_t{1} << 47;

// Cached, because reading the system's files takes 100 us. If a container's limit changes later,
// only the amount that may be committed changes; excess address space does no harm. Several threads
// may compute the value at once. If they waited for one of them, a child forked at that moment
// would wait forever.
inline std::size_t twice_total_memory() noexcept {
    static constinit std::atomic<std::size_t> known = 0;  // relaxed: it publishes nothing else
    std::size_t twice = known.load(std::memory_order_relaxed);
    if (twice == 0) {
        twice = 2 * std::min(platform::total_memory(), max_reserved_bytes / 2);
        known.store(twice, std::memory_order_relaxed);
    }
    return twice;
}

inline std::size_t share_of_addresses() noexcept {
    const std::size_t others = arenas_that_share.fetch_add(1, std::memory_order_relaxed);
    const std::size_t share = addresses_for_arenas / 16 / (others + 1);
    return std::min(twice_total_memory(), base::align_down(share, platform::huge_page_bytes));
}

/// The address range of one arena: reserved as a whole, committed from its front. REQUIRES: calls
/// of functions that change it do not overlap.
class ArenaMemory {
public:
    /// Charges what it commits to `budget`, or if that is nullptr to the budgets of scopes, and to
    /// the commit budget.
    explicit ArenaMemory(statistics::ArenaTotals& totals,
                         limits::BudgetNode* budget = nullptr) noexcept
        : totals_(totals), account_(budget) {}
    ~ArenaMemory() {
        if (is_one_of_many_) arenas_that_share.fetch_sub(1, std::memory_order_relaxed);
        if (base_ == nullptr) return;
        platform::mark_returned(base_, committed_);
        platform::release(base_, reserved_);
        totals_.charged_bytes.store(0, std::memory_order_relaxed);
        account_.give_back(committed_ - uncharged_);
    }
    ArenaMemory(const ArenaMemory&) = delete;
    ArenaMemory& operator=(const ArenaMemory&) = delete;

    /// Reserves `max_capacity` bytes. If it is 0, reserves twice the total memory, or the arena's
    /// share of the addresses if many arenas are alive; less if the address space is limited. The
    /// range begins at a multiple of `alignment` and of 2 MiB. Returns false if the system refuses.
    [[nodiscard]] bool reserve(std::size_t max_capacity, std::size_t alignment) noexcept {
        is_one_of_many_ = max_capacity == 0;
        limit_ =
            std::min(is_one_of_many_ ? share_of_addresses() : max_capacity, max_reserved_bytes);
        limit_name_ = max_capacity != 0 ? "max_capacity" : "reserved address space";
        const std::size_t space = platform::available_address_space();
        if (space != SIZE_MAX && space / 4 < limit_) {
            limit_ = base::align_down(space / 4, platform::page_bytes());
            limit_name_ = "a quarter of the address space that RLIMIT_AS left";
        }
        alignment = std::max(alignment, platform::huge_page_bytes);
        while (!reserve_limit(alignment)) {
            // If the caller set no limit, a smaller range will do: some tools leave a program
            // little address space.
            if (max_capacity != 0 || limit_ < alignment) return false;
            limit_ /= 2;
        }
        totals_.reserved_bytes.store(reserved_, std::memory_order_relaxed);
        totals_.limit_bytes.store(limit_, std::memory_order_relaxed);
        return true;
    }

    /// Commits memory until `end` bytes from the base may be used, with a surplus by the policy.
    /// Returns the bytes committed; 0 if the growth is refused, in which case nothing changed.
    std::size_t grow_to(std::size_t end, const GrowthPolicy& growth, Attempt& attempt) noexcept {
        attempt.budget.clear();
        if (end > limit_) {
            attempt.refusal = {limit_name_, limit_};
            attempt.refusal.needed_limit = end;
            return 0;
        }
        const std::size_t needed = base::align_up(end, platform::page_bytes()) - committed_;
        bool tried = false;
        const std::size_t grown =
            account_.take_and_get(needed, wanted(needed, growth), growth.fraction,
                                  platform::page_bytes(), attempt.budget, [&](std::size_t bytes) {
                                      tried = true;
                                      return commit(bytes);
                                  });
        if (grown == 0) {
            note_refusal(needed, tried, attempt);
            return 0;
        }
        totals_.count_growth(grown);
        record_charge();
        return grown;
    }
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
    bool charge(Attempt& attempt) noexcept {
        if (is_charged()) return true;
        attempt.budget.clear();
        if (account_.take_and_get(uncharged_, uncharged_, 1.0, platform::page_bytes(),
                                  attempt.budget, [](std::size_t) { return true; }) == 0) {
            note_refusal(uncharged_, false, attempt);
            return false;
        }
        uncharged_ = 0;
        record_charge();
        return true;
    }
    /// Populates the pages of the first `bytes` bytes, which are committed.
    void touch(std::size_t bytes) noexcept {
        const std::size_t whole = base::align_up(bytes, platform::page_bytes());
        const std::size_t touched = std::min(whole, committed_);
        if (touched == 0 || !platform::prefault(base_, touched)) return;
        base::raise_to(totals_.touched_bytes, touched);
    }
    /// Gives whole pages above `offset` back to the system. Returns their bytes.
    std::size_t give_back_above(std::size_t offset) noexcept {
        const std::size_t kept = base::align_up(offset, platform::page_bytes());
        if (kept >= committed_) return 0;
        const std::size_t bytes = committed_ - kept;
        if (!platform::decommit(base_ + kept, bytes)) return 0;
        platform::probe_unmapping(base_ + kept, bytes);
        platform::mark_returned(base_ + kept, bytes);
        const bool was_charged = is_charged();
        committed_ = kept;
        if (!was_charged) uncharged_ = kept;
        record_charge();
        base::lower_to(totals_.touched_bytes, kept);
        if (was_charged) account_.give_back(bytes);
        totals_.count_give_back(bytes);
        return bytes;
    }

    std::byte* base() const noexcept { return base_; }
    /// Returns how many bytes from the base are committed and may be used: at most the limit.
    std::size_t end() const noexcept {
        if (!is_charged()) return 0;
        return committed_ < limit_ ? committed_ : limit_;
    }
    std::size_t limit() const noexcept { return limit_; }
    std::size_t reserved() const noexcept { return reserved_; }

private:
    std::size_t wanted(std::size_t needed, const GrowthPolicy& growth) const noexcept {
        const std::size_t room = reserved_ - committed_;
        const double by_factor = static_cast<double>(committed_) * growth.factor;
        std::size_t most = std::max(needed, std::min(growth.step, room));
        if (by_factor >= static_cast<double>(room)) return room;
        most = std::max(most, static_cast<std::size_t>(by_factor));
        return std::min(base::align_up(most, platform::page_bytes()), room);
    }
    [[nodiscard]] bool reserve_limit(std::size_t alignment) noexcept {
        const std::size_t bytes = base::align_up(limit_, platform::page_bytes());
        if (bytes == 0) return false;
        base_ = static_cast<std::byte*>(platform::reserve(bytes, alignment));
        reserved_ = base_ != nullptr ? bytes : 0;
        return base_ != nullptr;
    }
    [[nodiscard]] bool commit(std::size_t bytes) noexcept {
        if (!platform::commit(base_ + committed_, bytes)) return false;
        committed_ += bytes;
        return true;
    }
    // Called after the charge has grown, and before it is given back to the budgets. So no reader
    // that sees a budget lowered still counts the bytes as charged and untouched.
    void record_charge() noexcept {
        totals_.charged_bytes.store(committed_ - uncharged_, std::memory_order_relaxed);
    }
    void note_refusal(std::size_t needed, bool system_refused, Attempt& attempt) const noexcept {
        attempt.refusal = account_.refuse(needed, system_refused, attempt.budget);
        attempt.refusal.missing = 0;  // counts the pages of a pool only
    }

    statistics::ArenaTotals& totals_;
    GrowthAccount account_;
    std::byte* base_ = nullptr;
    std::size_t reserved_ = 0;
    std::size_t limit_ = 0;
    const char* limit_name_ = "max_capacity";
    std::size_t committed_ = 0;  // whole pages
    std::size_t uncharged_ = 0;  // either all committed bytes or 0
    bool is_one_of_many_ = false;
};

}  // namespace tensorpool::arena
