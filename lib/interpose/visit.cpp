#include "interpose/visit.hpp"

#include <utility>

#include <tensorpool/memory_pool.hpp>

namespace tensorpool::interpose {

constinit thread_local unsigned visits [[gnu::tls_model("initial-exec")]] = 0;

namespace {

struct SetAside {
    SetAside* next;
};
constinit thread_local SetAside* set_aside [[gnu::tls_model("initial-exec")]] = nullptr;

}  // namespace

void free_when_outside(void* p) noexcept {
    set_aside = new (p) SetAside{set_aside};
}

void enter_pool() noexcept {
    ++visits;
}

// Each of these frees may set other blocks aside, so the list is checked again while still inside.
void leave_pool() noexcept {
    while (visits == 1 && set_aside != nullptr) [[unlikely]] {
            SetAside* const block = std::exchange(set_aside, set_aside->next);
            get_global_memory_pool().deallocate(block);
        }
    --visits;
}

}  // namespace tensorpool::interpose
