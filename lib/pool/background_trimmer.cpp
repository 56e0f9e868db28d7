#include "pool/background_trimmer.hpp"

#include <algorithm>
#include <thread>

#include <tensorpool/memory_pool.hpp>

#include "base/never_destroyed.hpp"
#include "platform/platform.hpp"
#include "platform/process/fork_handlers.hpp"
#include "pool/pool.hpp"
#include "pool/pool_list.hpp"
#include "statistics/recorder_hooks.hpp"

namespace tensorpool::detail {
inline namespace abi_2 {
namespace {

constinit base::NeverDestroyed<BackgroundTrimmer> the_trimmer;

// While the library is loaded, before there are threads.
[[maybe_unused]] const bool watches_forks_from_the_start =
    (background_trimmer().watch_forks(), true);

// Where the thread cannot see whether a call came while it fell asleep.
constexpr std::uint64_t pause_without_fences_ns = 1'000'000'000;

}  // namespace

BackgroundTrimmer& background_trimmer() noexcept {
    return the_trimmer.get();
}

void BackgroundTrimmer::start() noexcept {
    State none = State::none;
    if (!state_.compare_exchange_strong(none, State::starting)) return;
    if (!is_allowed_) {
        state_ = State::none;
        return;
    }
    ends_ = false;
    word_ = statistics::recorder_hooks.wake.load(std::memory_order_acquire);
    thread_ = platform::start_own_thread("tensorpool-trim", [] { background_trimmer().run(); });
    state_ = thread_ ? State::running : State::refused;
}

void BackgroundTrimmer::allow(bool is_allowed) noexcept {
    is_allowed_ = is_allowed;
    if (is_allowed) {
        State refused = State::refused;
        state_.compare_exchange_strong(refused, State::none);
        return;
    }
    // Another thread may be starting or ending it.
    for (State state = State::running; !state_.compare_exchange_weak(state, State::ending);
         state = State::running) {
        if (state == State::none || state == State::refused) return;
        std::this_thread::yield();
    }
    ends_ = true;
    platform::wake_waiter(*word_.load());
    platform::join_own_thread(thread_);
    thread_ = {};
    state_ = State::none;
}

void BackgroundTrimmer::wake() noexcept {
    if (sleeps_.exchange(false)) platform::wake_waiter(*word_.load());
}

// The word may be another one later, when the process can be asked to trim.
void BackgroundTrimmer::run() noexcept {
    for (;;) {
        word_ = statistics::recorder_hooks.wake.load(std::memory_order_acquire);
        const std::uint32_t seen = word_.load()->load(std::memory_order_acquire);
        if (ends_) break;
        statistics::look_for_recorder();
        platform::wait_on(*word_.load(), seen, pause_after_look());
        sleeps_.store(false, std::memory_order_relaxed);
    }
}

// A slow path that the last look does not see sees that the thread sleeps, and wakes it.
std::uint64_t BackgroundTrimmer::pause_after_look() noexcept {
    const std::uint64_t pause = look(platform::monotonic_clock_ns());
    if (pause != platform::no_timeout) return pause;
    sleeps_.store(true, std::memory_order_relaxed);
    if (!platform::fence_all_threads()) return pause_without_fences_ns;
    return look(platform::monotonic_clock_ns());
}

std::uint64_t BackgroundTrimmer::look(std::uint64_t now_ns) noexcept {
    std::uint64_t pause = platform::no_timeout;
    pool_list().visit([&](Pool& pool) {
        pages::Changes changes;
        {
            const std::lock_guard guard(look_mutex_);
            pause = std::min(pause, pool.look_in_background(now_ns, changes));
        }
        pool.tell(changes);
    });
    return pause;
}

void BackgroundTrimmer::watch_forks() noexcept {
    (void)platform::set_fork_handlers(
        platform::ForkPlace::trimmer, [] { background_trimmer().before_fork(); },
        [] { background_trimmer().after_fork_in_parent(); },
        [] { background_trimmer().after_fork_in_child(); });
    (void)platform::set_fork_handlers(
        platform::ForkPlace::pool_list, [] { pool_list().lock(); }, [] { pool_list().unlock(); },
        [] {
            pool_list().forget_visits();
            pool_list().unlock();
        });
}

void BackgroundTrimmer::before_fork() noexcept {
    look_mutex_.lock();
}

void BackgroundTrimmer::after_fork_in_parent() noexcept {
    look_mutex_.unlock();
}

// The thread is not in the child: a pool there starts its own.
void BackgroundTrimmer::after_fork_in_child() noexcept {
    thread_ = {};
    sleeps_ = false;
    state_ = State::none;
    after_fork_in_parent();
}

}  // namespace abi_2
}  // namespace tensorpool::detail

namespace tensorpool {

void allow_background_trimmer(bool allowed) noexcept {
    detail::background_trimmer().allow(allowed);
}

}  // namespace tensorpool
