#include "device/runtime/device_changes.hpp"

#include "platform/process/fork_handlers.hpp"

namespace tensorpool::device {

void watch_forks() noexcept {
    // This fails only for lack of memory. A child must then not use devices; nothing else is lost.
    (void)platform::set_fork_handlers(
        platform::ForkStage::devices, [] {}, [] {},
        [] {
            forks_seen.fetch_add(1, std::memory_order_relaxed);
            note_device_change();
        });
}

}  // namespace tensorpool::device
