#include <array>
#include <atomic>

#include "platform/platform.hpp"
#include "platform/process/thread_key.hpp"

namespace tensorpool::platform {
namespace {

/// One of the functions that are called when threads end. Nothing here is locked: a child of a fork
/// would keep what another thread had locked.
struct ExitSlot {
    std::atomic<bool> taken{false};
    ThreadKey key{};
    // Stored with release after `key` is made, loaded with acquire before that is used.
    std::atomic<void (*)()> function{nullptr};
};
constinit std::array<ExitSlot, max_exit_handlers> exit_slots{};

ExitSlot* added_slot(ExitHandler handler) noexcept {
    if (handler < 0 || handler >= max_exit_handlers) return nullptr;
    ExitSlot& slot = exit_slots[static_cast<std::size_t>(handler)];
    return slot.function.load(std::memory_order_acquire) == nullptr ? nullptr : &slot;
}

}  // namespace

/// What a thread's key holds is the slot.
void run_exit_handler(void* slot) noexcept {
    static_cast<ExitSlot*>(slot)->function.load(std::memory_order_acquire)();
}

ExitHandler add_thread_exit_handler(void (*function)()) noexcept {
    for (ExitHandler handler = 0; handler < max_exit_handlers; ++handler) {
        ExitSlot& slot = exit_slots[static_cast<std::size_t>(handler)];
        // Acquire: after the release of a thread that took it and failed.
        if (slot.taken.exchange(true, std::memory_order_acquire)) continue;
        if (!make_thread_key(slot.key)) {
            slot.taken.store(false, std::memory_order_release);
            return no_exit_handler;
        }
        slot.function.store(function, std::memory_order_release);
        return handler;
    }
    return no_exit_handler;
}

bool call_at_thread_exit(ExitHandler handler) noexcept {
    ExitSlot* const slot = added_slot(handler);
    return slot != nullptr && set_thread_key(slot->key, slot);
}

}  // namespace tensorpool::platform
