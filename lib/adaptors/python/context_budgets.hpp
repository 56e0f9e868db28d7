#pragma once

#include <atomic>

namespace tensorpool::python {

extern constinit std::atomic<bool> any_budget_was_entered;

/// While it lives, the calling thread is in the scopes of the budgets whose `with` blocks are open
/// in the present context (contextvars), if it holds the interpreter's lock. Before version 3.14,
/// the interpreter does not report that a thread switches tasks, so each allocation compares the
/// context. Relaxed: the thread that enters the first budget sees its own store, and a thread that
/// inherits the context was started or woken after it.
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
