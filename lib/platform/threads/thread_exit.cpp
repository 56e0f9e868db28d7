#include <array>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

/// One function that is called when threads end. There is no lock here: in the child of a fork a
/// lock held by another thread would stay locked.
struct ExitEntry {
    std::atomic<bool> taken{false};
    pthread_key_t key{};
    // Stored with release after `key` was made; loaded with acquire before `key` is used.
    std::atomic<void (*)()> function{nullptr};
};
constinit std::array<ExitEntry, max_exit_handlers> exit_entries{};

// Threads may end after a plugin that contains the library was closed.
[[maybe_unused]] const bool is_kept_loaded = keep_loaded();

ExitEntry* added_entry(ExitHandler handler) noexcept {
    if (handler < 0 || handler >= max_exit_handlers) return nullptr;
    ExitEntry& entry = exit_entries[static_cast<std::size_t>(handler)];
    return entry.function.load(std::memory_order_acquire) == nullptr ? nullptr : &entry;
}

// The value of a thread's key is the entry.
void run_exit_handler(void* entry) noexcept {
    static_cast<ExitEntry*>(entry)->function.load(std::memory_order_acquire)();
}

}  // namespace

ExitHandler add_thread_exit_handler(void (*function)()) noexcept {
    const SystemCalls system_calls;
    for (ExitHandler handler = 0; handler < max_exit_handlers; ++handler) {
        ExitEntry& entry = exit_entries[static_cast<std::size_t>(handler)];
        // Acquire: pairs with the release below, of a thread that took the entry and failed.
        if (entry.taken.exchange(true, std::memory_order_acquire)) continue;
        if (pthread_key_create(&entry.key, run_exit_handler) != 0) {
            entry.taken.store(false, std::memory_order_release);
            return no_exit_handler;
        }
        entry.function.store(function, std::memory_order_release);
        return handler;
    }
    return no_exit_handler;
}

// A value other than null causes the destructor to be called. The system resets the value before
// that, so setting it again from within causes another round (at most
// PTHREAD_DESTRUCTOR_ITERATIONS).
bool call_at_thread_exit(ExitHandler handler) noexcept {
    ExitEntry* const entry = added_entry(handler);
    const SystemCalls system_calls;
    return entry != nullptr && pthread_setspecific(entry->key, entry) == 0;
}

}  // namespace tensorpool::platform
