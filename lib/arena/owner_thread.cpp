#include "arena/owner_thread.hpp"

#include "base/checks.hpp"
#include "events/misuse.hpp"

namespace tensorpool::arena {

bool OwnerThread::is_checked() const noexcept {
    return base::checks_calls(options_.checks) && options_.sharing == Sharing::one_thread;
}

void OwnerThread::check_allocating() noexcept {
    if (!is_checked()) return;
    // Relaxed: only the identity matters, no other memory depends on it.
    std::thread::id none;
    owner_.compare_exchange_strong(none, std::this_thread::get_id(), std::memory_order_relaxed);
    check("allocate");
}

void OwnerThread::check(const char* call) const noexcept {
    if (!is_checked()) return;
    const std::thread::id owner = owner_.load(std::memory_order_relaxed);
    if (owner == std::thread::id() || owner == std::this_thread::get_id()) return;
    events::stop_at_misuse(
        {.kind = events::MisuseKind::wrong_thread, .owner = options_.name},
        "%s: arena '%s' belongs to one thread (Sharing::one_thread), and another one "
        "used it before",
        call, options_.name.c_str());
}

}  // namespace tensorpool::arena
