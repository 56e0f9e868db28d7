#include "serve/watch/rounds.hpp"
#include "common/output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

namespace tensorpool::command::serve {
namespace {

template <class Clock>
std::uint64_t nanoseconds() {
    const auto since = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    return static_cast<std::uint64_t>(since);
}

/// Takes one round. A round that fails, for example for lack of memory, is skipped.
void take_round(Watcher& watcher) {
    try {
        watcher.round(
            {nanoseconds<std::chrono::steady_clock>(), nanoseconds<std::chrono::system_clock>()});
    } catch (const std::exception& error) {
        print_error(
            fmt::format("tensorpool: serve: the processes could not be read: {}", error.what()));
    }
}

}  // namespace

Rounds::Rounds(Watcher& watcher, std::chrono::milliseconds period)
    : watcher_(watcher), thread_([this, period] { run(period); }) {}

Rounds::~Rounds() {
    {
        const std::lock_guard lock(mutex_);
        stopped_ = true;
    }
    changed_.notify_all();
    thread_.join();
}

void Rounds::run(std::chrono::milliseconds period) {
    auto due = std::chrono::steady_clock::now();
    std::unique_lock lock(mutex_);
    while (!stopped_) {
        lock.unlock();
        take_round(watcher_);
        lock.lock();
        due = std::max(due + period, std::chrono::steady_clock::now());
        changed_.wait_until(lock, due, [this] { return stopped_; });
    }
}

}  // namespace tensorpool::command::serve
