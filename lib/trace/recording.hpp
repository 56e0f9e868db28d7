#pragma once

#include <atomic>
#include <cstdint>

#include "statistics/recorder_hooks.hpp"
#include "trace/rings.hpp"

namespace tensorpool::trace {

/// What threads that record share: the rings, where they go, and which recording it is. The
/// recorder changes it; a thread that records reads it on its slow path.
struct Recording {
    enum class Target : std::uint8_t { none, file, reader };

    Rings rings;
    /// Counts recordings; 0: there was none yet. A thread's ring belongs to one of them.
    std::atomic<std::uint64_t> number = 0;
    std::atomic<Target> target = Target::none;
    std::atomic<Control*> control = nullptr;

    Target target_now() const noexcept { return target.load(std::memory_order_relaxed); }
};

/// Ends recording where the reader is gone or the file takes no more: at once for the calls
/// themselves, and for all else on the next slow path, because the caller may hold locks.
inline void give_up_recording() noexcept {
    auto& hooks = statistics::recorder_hooks;
    hooks.record.store(nullptr, std::memory_order_relaxed);
    // There are never so many requests.
    hooks.answered.store(UINT64_MAX, std::memory_order_relaxed);
}

}  // namespace tensorpool::trace
