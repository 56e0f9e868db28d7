#pragma once

#include <atomic>
#include <cstdint>

#include "events/recorder_hooks.hpp"
#include "trace/rings.hpp"

namespace tensorpool::trace {

/// The state that recording threads share: the rings, their target, and the number of the
/// recording. The recorder changes it; a recording thread reads it on its slow path.
struct Recording {
    enum class Target : std::uint8_t { none, file, reader };

    Rings rings;
    /// Counts recordings; 0: there was none yet. Each ring of a thread belongs to one recording.
    std::atomic<std::uint64_t> number = 0;
    std::atomic<Target> target = Target::none;
    std::atomic<Control*> control = nullptr;

    Target target_now() const noexcept { return target.load(std::memory_order_relaxed); }
};

/// Ends a recording if the reader is gone or the file accepts no more data. Calls stop recording at
/// once. Everything else follows on the next slow path, because the caller may hold locks.
inline void give_up_recording() noexcept {
    auto& hooks = events::recorder_hooks;
    hooks.record.store(nullptr, std::memory_order_relaxed);
    // No real number of requests reaches this value.
    hooks.answered.store(UINT64_MAX, std::memory_order_relaxed);
}

}  // namespace tensorpool::trace
