#pragma once

#include <atomic>

namespace tensorpool::python {

extern constinit std::atomic<bool> any_budget_was_entered;

/// While it lives, the calling thread is in the scopes of the budgets whose `with` blocks are open
/// in the present context (contextvars), if it holds the interpreter's lock. The interpreter does
/// not tell when a thread goes from one task to another, so what allocates looks. Relaxed: the
/// thread that enters the first budget knows it, and others need not.
class InContext {
public:
    InContext() noexcept {
        if (any_budget_was_entered.load(std::memory_order_relaxed)) [[unlikely]]
            follows_ = follow();
    }
    ~InContext() {
        if (follows_) [[unlikely]]
            leave();
    }
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;

private:
    static bool follow() noexcept;
    static void leave() noexcept;

    bool follows_ = false;
};

}  // namespace tensorpool::python
