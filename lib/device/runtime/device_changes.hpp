#pragma once

#include <atomic>
#include <cstdint>

namespace tensorpool::device {

/// Grows whenever devices may have come or gone: what a thread knows of its current device holds as
/// long as this stays. Not 0, which a thread that knows nothing has.
inline constinit std::atomic<std::uint32_t> device_changes{1};

/// Release: pairs with the acquire of who looks at it, so that the change is seen.
inline void note_device_change() noexcept {
    device_changes.fetch_add(1, std::memory_order_release);
}

}  // namespace tensorpool::device
