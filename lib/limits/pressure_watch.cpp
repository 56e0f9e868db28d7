#include "limits/pressure_watch.hpp"

#include "limits/commit_budget.hpp"

namespace tensorpool::limits {
namespace {

/// Called by one thread at a time. The first call requests reports, so a program without holders
/// has no descriptor for them.
platform::MemoryPressure read_pressure() noexcept {
    static constinit std::optional<platform::PressureEvent> event;
    if (!event) event = platform::open_pressure_event();
    platform::MemoryPressure pressure = platform::read_memory_pressure();
    pressure.events += platform::count_reports(*event);
    return pressure;
}

/// What holders give costs them more than free memory costs a pool, which gives it back when less
/// than a sixteenth is left. A budget may fill a memory group up to this part.
constexpr std::size_t part_to_leave = 64;

constinit PressureWatch the_watch({read_pressure, []() noexcept {
                                       return commit_budget().missing_bytes(part_to_leave);
                                   }});

/// Returns what was counted since `seen`, and updates it. A file that cannot be read, with too many
/// open files for instance, counts as 0, which is therefore ignored. A decrease is the move to
/// another group.
std::uint64_t take_new(std::uint64_t& seen, std::uint64_t now) noexcept {
    if (now == 0) return 0;
    const std::uint64_t before = std::exchange(seen, now);
    return now > before ? now - before : 0;
}

}  // namespace

std::size_t PressureWatch::wanted_bytes(std::uint64_t now_ns) noexcept {
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

void forget_pressure_looker() noexcept {
    the_watch.forget_looker();
}

void ask_under_pressure() noexcept {
    if (is_inside_holder()) return;
    const std::size_t wanted = the_watch.wanted_bytes(platform::monotonic_clock_ns());
    if (wanted != 0) ask_all_holders(wanted);
}

// A hold keeps each root while its holders are asked, so that its successor can be read afterwards.
void ask_all_holders(std::size_t bytes) noexcept {
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

}  // namespace tensorpool::limits
