#include "serve/service.hpp"

#include <fmt/format.h>

#include <condition_variable>
#include <exception>
#include <stop_token>

#include "common/output.hpp"

namespace tensorpool::command::serve {
namespace {

template <class Clock>
std::uint64_t nanoseconds() {
    const auto since = std::chrono::nanoseconds(Clock::now().time_since_epoch()).count();
    return static_cast<std::uint64_t>(since);
}

}  // namespace

Service::Service(Processes& processes, const Options& options)
    : server_(
          options.address, [this](const Request& request) { return site_.answer(request); },
          options.limits),
      watcher_(processes, options.token.empty() ? KeepProfiles::no : KeepProfiles::yes),
      gate_(options.address, options.token, server_.port()),
      site_(watcher_, gate_) {
    take_round();
    const std::chrono::milliseconds period = options.period;
    rounds_ =
        std::jthread([this, period](const std::stop_token& stop) { take_rounds(stop, period); });
    answers_ = std::jthread([this](const std::stop_token& stop) {
        const std::stop_callback end(stop, [this] { server_.stop(); });
        server_.run();
    });
}

/// A round that fails, for example for lack of memory, is skipped.
void Service::take_round() {
    try {
        watcher_.round(
            {nanoseconds<std::chrono::steady_clock>(), nanoseconds<std::chrono::system_clock>()});
        server_.wake();
    } catch (const std::exception& error) {
        print_error(
            fmt::format("tensorpool: serve: the processes could not be read: {}", error.what()));
    }
}

void Service::take_rounds(const std::stop_token& stop, std::chrono::milliseconds period) {
    std::mutex mutex;
    std::condition_variable_any stopped;
    std::unique_lock lock(mutex);
    for (auto due = std::chrono::steady_clock::now();; take_round()) {
        due = std::max(due + period, std::chrono::steady_clock::now());
        stopped.wait_until(lock, stop, due, [] { return false; });
        if (stop.stop_requested()) return;
    }
}

}  // namespace tensorpool::command::serve
