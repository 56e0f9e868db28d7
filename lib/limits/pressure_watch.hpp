#pragma once

#include "limits/budget_node.hpp"
#include "platform/memory/memory_pressure.hpp"

namespace tensorpool::limits {

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
    std::size_t wanted_bytes(std::uint64_t now_ns) noexcept;
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
/// The caller holds no lock.
void ask_all_holders(std::size_t bytes) noexcept;
void ask_under_pressure() noexcept;
/// Calls PressureWatch::forget_looker for the watch of the process.
void forget_pressure_looker() noexcept;

/// Asks holders for a sixteenth of what the roots hold if the system is short of memory, or for
/// less if less is missing. Called on slow paths of requests, by a thread that holds no lock. Costs
/// one load if there is no holder.
inline void look_at_pressure() noexcept {
    if (budgets().holder_count.load(std::memory_order_relaxed) != 0) [[unlikely]]
        ask_under_pressure();
}

}  // namespace tensorpool::limits
