#include <utility>

#include "interpose/blocks_of_pool.hpp"
#include "platform/process/fork_handlers.hpp"
#include "platform/tools/memory_tools.hpp"

// The lock of the C library's list of streams. A thread may lock it again while it holds it.
extern "C" {
[[gnu::weak]] void _IO_list_lock() noexcept;
[[gnu::weak]] void _IO_list_unlock() noexcept;
[[gnu::weak]] void _IO_list_resetlock() noexcept;
}

namespace tensorpool::interpose {

constinit thread_local unsigned visits [[gnu::tls_model("initial-exec")]] = 0;

namespace {

struct SetAside {
    SetAside* next;
};
constinit thread_local SetAside* set_aside [[gnu::tls_model("initial-exec")]] = nullptr;
constinit thread_local bool is_out_for_good [[gnu::tls_model("initial-exec")]] = false;

/// 1; reads 0 in a child that was made without fork handlers. Relaxed: a child has one thread when
/// it begins.
constinit std::atomic<std::uint32_t> always_marked = 1;
constinit std::atomic<std::uint32_t>* process_mark = &always_marked;

}  // namespace

bool must_stay_out() noexcept {
    if (is_inside_pool()) return true;
    if (process_mark->load(std::memory_order_relaxed) != 0) [[likely]]
        return false;
    if (platform::is_single_threaded()) {
        process_mark->store(1, std::memory_order_relaxed);
        return false;
    }
    enter_pool();
    is_out_for_good = true;
    return true;
}

// Not by the mark: while the handlers of a fork run, it is 0 in a child that soon enters again.
bool stays_out() noexcept {
    return is_out_for_good;
}

void free_when_outside(void* p) noexcept {
    if (stays_out()) return;
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

namespace {

// Around a fork, this thread holds the pool's locks, and handlers of other libraries may run and
// allocate. The next allocator serves these requests.
//
// After these handlers, fork takes the lock of the list of streams. Its holder may wait for a
// stream, whose holder may wait for the pool, as in getline beside fflush(NULL). So the lock of the
// list is taken before those of the pool.
bool has_list_lock() noexcept {
    return _IO_list_lock != nullptr && _IO_list_unlock != nullptr && _IO_list_resetlock != nullptr;
}
void before_fork() {
    if (has_list_lock()) _IO_list_lock();
    enter_pool();
}
void after_fork_in_parent() {
    leave_pool();
    if (has_list_lock()) _IO_list_unlock();
}
void after_fork_in_child() {
    process_mark->store(1, std::memory_order_relaxed);
    leave_pool();
    // In a child with several threads before, fork has done so.
    if (has_list_lock()) _IO_list_resetlock();
}

// A memory tool watches the allocator behind this one better than a pool: blocks that are freed
// stay unused there for a while. So the pool serves nothing.
bool start() {
    if (platform::has_memory_tool()) {
        platform::say("%s watches this process; its own malloc serves all requests",
                      platform::name_of(platform::memory_tool()));
        return false;
    }
    hardened.store(is_hardened_by_environment(), std::memory_order_relaxed);
    if (auto* const mark = platform::make_process_mark()) process_mark = mark;
    const std::size_t minimum = minimum_from_environment();
    detail::GlobalPool::serve_malloc(minimum);
    const bool watches_forks = platform::set_fork_handlers(
        platform::ForkStage::allocator, before_fork, after_fork_in_parent, after_fork_in_child);
    if (watches_forks) {
        minimum_bytes.store(minimum, std::memory_order_relaxed);
    }
    return watches_forks;
}

[[maybe_unused]] const bool started = start();

// Reports to `tensorpool run` that this process has loaded the library. A process whose requests
// stay below the minimum would otherwise look like one into which the library was not loaded.
bool notify_observer() {
    const char* const observer = platform::environment_variable("TENSORPOOL_OBSERVER");
    return observer != nullptr && platform::send_note(observer, "malloc");
}

[[maybe_unused]] const bool notified = notify_observer();

}  // namespace
}  // namespace tensorpool::interpose
