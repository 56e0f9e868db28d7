#include "limits/commit_budget.hpp"

#include <tensorpool/detail/saturating.hpp>

#include "statistics/records/record_values.hpp"

namespace tensorpool::limits {
namespace {

/// What arenas and others were charged for, and have neither handed out nor touched.
std::size_t untouched_bytes() noexcept {
    return statistics::sum_of("untouched_bytes");
}

constinit CommitBudget the_budget({platform::committable_memory, platform::resident_memory,
                                   untouched_bytes});

// Saturating, because a system that cannot be read reports SIZE_MAX as available.
using detail::sum;

}  // namespace

CommitBudget& commit_budget() noexcept {
    return the_budget;
}

std::size_t CommitBudget::take(std::size_t needed, std::size_t wanted, double fraction,
                               std::size_t unit) noexcept {
    const std::lock_guard guard(mutex_);
    const std::size_t committed = committed_.load(std::memory_order_relaxed);
    const std::size_t lowest = lowest_.load(std::memory_order_relaxed);
    if (committed + needed >= sum(lowest, look_again_after_)) look(committed);
    if (room(committed, 1.0) < needed && !has_room_for(needed)) return 0;
    const std::size_t surplus_ends = base::align_down(room(committed, fraction), unit);
    const std::size_t taken = std::max(needed, std::min(wanted, surplus_ends));
    committed_.fetch_add(taken, std::memory_order_relaxed);
    return taken;
}

// Reads the system's values again and does not count memory that was never handed out, nor what is
// kept out of memory.
bool CommitBudget::has_room_for(std::size_t needed) noexcept {
    const std::size_t committed = committed_.load(std::memory_order_relaxed);
    const std::size_t gone = source_.untouched() + kept_out();
    const std::size_t charged = committed - std::min(committed, gone);
    look(charged);
    return room(charged, 1.0) >= needed;
}

base::Refusal CommitBudget::refuse(std::size_t needed, bool system_refused) const noexcept {
    if (system_refused) {
        base::Refusal refusal = {"what the system commits", ceiling()};
        refusal.advice =
            "the system refused to commit so much; see `ulimit -v`, and "
            "vm.overcommit_memory with CommitLimit in /proc/meminfo";
        return refusal;
    }
    base::Refusal refusal = {"available memory", ceiling()};
    const std::size_t wanted = sum(committed(), needed);
    // If the limit is no longer exceeded, another thread has released memory in the meantime.
    if (wanted > refusal.limit_bytes) {
        refusal.needed_limit = wanted;
        refusal.missing = wanted - refusal.limit_bytes;
    }
    return refusal;
}

bool CommitBudget::has_available(std::size_t bytes, std::uint64_t now_ns) noexcept {
    constexpr std::uint64_t pause_ns = 100'000'000;
    const std::uint64_t age_ns = now_ns - read_ns_.load(std::memory_order_relaxed);
    const std::size_t recently = recently_available_.load(std::memory_order_relaxed);
    if (age_ns < pause_ns && recently / 4 >= bytes) return true;
    const std::size_t now = source_.available();
    recently_available_.store(now, std::memory_order_relaxed);
    read_ns_.store(now_ns, std::memory_order_relaxed);
    return now >= bytes;
}

std::size_t CommitBudget::missing_bytes(std::size_t part) const noexcept {
    const std::size_t available = source_.available();
    const std::size_t least = sum(available, source_.resident()) / part;
    return least - std::min(least, available);
}

void CommitBudget::look(std::size_t committed) noexcept {
    const std::size_t available = source_.available();
    // Resident memory that is not this library's reduces what is available to it. At most the
    // committed bytes can be this library's.
    const std::size_t ours = std::min(source_.resident(), committed);
    ceiling_.store(sum(available, ours), std::memory_order_relaxed);
    look_again_after_ = available / 64;
    lowest_.store(committed, std::memory_order_relaxed);
    base::lower_to(lowest_, committed_.load(std::memory_order_relaxed));
}

std::size_t CommitBudget::room(std::size_t committed, double fraction) const noexcept {
    const std::size_t ceiling = ceiling_.load(std::memory_order_relaxed);
    // The whole ceiling is not computed as a double: SIZE_MAX would round up to a value that does
    // not fit in a size.
    const std::size_t allowed =
        fraction >= 1.0 ? ceiling
                        : static_cast<std::size_t>(static_cast<double>(ceiling) * fraction);
    return allowed > committed ? allowed - committed : 0;
}

}  // namespace tensorpool::limits
