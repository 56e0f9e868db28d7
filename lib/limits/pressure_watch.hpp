#pragma once

#include "limits/commit_budget.hpp"
#include "platform/memory/memory_pressure.hpp"

namespace tensorpool::limits {

/// Returns what was counted since `seen`, and updates it. A file that cannot be read, with too many
/// open files for instance, counts as 0, which is therefore ignored. A decrease is the move to
/// another group.
inline std::uint64_t take_new(std::uint64_t& seen, std::uint64_t now) noexcept {
    if (now == 0) return 0;
    const std::uint64_t before = std::exchange(seen, now);
    return now > before ? now - before : 0;
}

/// Finds out, at most ten times a second, whether the system is short of memory: whether threads
/// waited for memory in a tenth of the time since the last look, whether a control group met a
/// limit or reported pressure since then, or whether less than a 64th of the process's memory
/// is left. Thread-safe.
class PressureWatch {
public:
    /// Where it reads the state of the system. Tests replace it.
    struct Source {
        platform::MemoryPressure (*pressure)() noexcept;
        std::size_t (*missing_bytes)() noexcept;
    };
    explicit constexpr PressureWatch(Source source) noexcept : source_(source) {}

    static constexpr std::uint64_t pause_ns = 100'000'000;
    /// Returns how many bytes should be given back: `unknown_bytes` after stalls and limits, or
    /// what is missing to that 64th. 0 if memory is not short, if the last look is more recent
    /// than `pause_ns`, or if another thread looks now.
    std::size_t wanted_bytes(std::uint64_t now_ns) noexcept {
        if (now_ns < next_look_ns_.load(std::memory_order_relaxed)) return 0;
        if (is_looking_.exchange(true, std::memory_order_acquire)) return 0;
        next_look_ns_.store(now_ns + pause_ns, std::memory_order_relaxed);
        const platform::MemoryPressure now = source_.pressure();
        const std::uint64_t events = take_new(seen_.events, now.events);
        const std::uint64_t stalled_us =
            std::max(take_new(seen_.machine_stalled_us, now.machine_stalled_us),
                     take_new(seen_.group_stalled_us, now.group_stalled_us));
        const std::uint64_t elapsed_ns = now_ns - std::exchange(last_look_ns_, now_ns);
        const bool is_first = elapsed_ns == now_ns;
        is_looking_.store(false, std::memory_order_release);
        if (!is_first && (events != 0 || stalled_us * 1000 > elapsed_ns / 10)) return unknown_bytes;
        return source_.missing_bytes();
    }
    static constexpr std::size_t unknown_bytes = SIZE_MAX;
    /// Called in the child of a fork: a thread that was looking does not exist there. What it was
    /// writing is not used, so the next look is as the first.
    void forget_looker() noexcept {
        if (is_looking_.exchange(false, std::memory_order_acquire)) last_look_ns_ = 0;
    }

private:
    Source source_;
    std::atomic<std::uint64_t> next_look_ns_ = 0;  // relaxed: the exchange decides who looks
    std::atomic<bool> is_looking_ = false;         // acquire and release: guards what follows
    std::uint64_t last_look_ns_ = 0;
    platform::MemoryPressure seen_ = {};
};

/// Asks the holders of each root for a sixteenth of what it holds, until `bytes` bytes were given.
/// The caller holds no lock. A hold keeps each root while its holders are asked, so that its
/// successor can be read afterwards.
inline void ask_all_holders(std::size_t bytes) noexcept {
    constexpr std::size_t share = 16;
    BudgetNode* root = nullptr;
    std::size_t wanted = 0;
    const auto go_on = [&](BudgetNode* from) {
        const std::lock_guard guard(budgets().mutex);
        BudgetNode* next = from == nullptr ? budgets().roots : from->next;
        while (next != nullptr && next->holders.below == 0) next = next->next;
        if (next != nullptr) {
            next->hold();
            wanted = next->counters.in_use() / share;
        }
        if (from != nullptr) from->let_go_locked();
        return next;
    };
    while ((root = go_on(root)) != nullptr) {
        const std::size_t asked = std::min(bytes, std::max<std::size_t>(wanted, 1));
        if (asked != 0) bytes -= std::min(bytes, ask_holders(*root, asked));
    }
}

/// What holders give costs them more than free memory costs a pool, which gives it back when less
/// than a sixteenth is left. A budget may fill a memory group up to this part.
inline constexpr std::size_t part_to_leave = 64;

/// Called by one thread at a time. The first call requests reports, so a program without holders
/// has no descriptor for them.
inline platform::MemoryPressure read_pressure() noexcept {
    static constinit std::optional<platform::PressureEvent> event;
    if (!event) event = platform::open_pressure_event();
    platform::MemoryPressure pressure = platform::read_memory_pressure();
    pressure.events += platform::count_reports(*event);
    return pressure;
}

inline constinit PressureWatch the_watch({read_pressure, []() noexcept {
                                              return commit_budget().missing_bytes(part_to_leave);
                                          }});

[[gnu::noinline]] inline void ask_under_pressure() noexcept {
    if (is_inside_holder()) return;
    const std::size_t wanted = the_watch.wanted_bytes(platform::monotonic_clock_ns());
    if (wanted != 0) ask_all_holders(wanted);
}

/// Asks holders for a sixteenth of what the roots hold if the system is short of memory, or for
/// less if less is missing. Called on slow paths of requests, by a thread that holds no lock. Costs
/// one load if there is no holder.
inline void look_at_pressure() noexcept {
    if (budgets().holder_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
        ask_under_pressure();
}

}  // namespace tensorpool::limits
