#pragma once

/// @file
/// What all requests are answered from. One thread takes a round a second; no request reads a
/// process itself, but for its timeline.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "serve/watch/watched_process.hpp"

namespace tensorpool::command::serve {

/// A process as it stood after the last round.
struct View {
    std::shared_ptr<const Moment> moment;  ///< never null
    bool ended = false;
    std::uint64_t ended_unix_ns = 0;
};

/// Any thread.
class Watcher {
public:
    static constexpr std::uint64_t remembered_ns = 600'000'000'000;
    /// Of processes that ended: a machine that starts many for a short time must not fill memory.
    static constexpr std::size_t remembered_count = 64;

    /// `source` must outlive it.
    explicit Watcher(Processes& source) : source_(source) {}

    /// Lists the processes and reads each once.
    void round(Now now);

    std::vector<ListedProcess> processes() const;
    /// How often the list has changed.
    std::uint64_t list_version() const;
    /// Nothing where no snapshot was ever taken; `why_not` says why.
    std::optional<View> view(std::uint64_t process) const;
    std::string why_not(std::uint64_t process) const;
    /// The event `history`, up to `time_ns` of the monotonic clock; "" where there is none.
    std::string history_json(std::uint64_t process, std::uint64_t time_ns) const;
    TimelinePart entries_since(std::uint64_t process, std::uint64_t number);
    /// The last snapshots of those that run at this moment.
    std::vector<std::shared_ptr<const Moment>> running() const;

    std::uint64_t rounds() const;
    /// Waits until there were more rounds than `rounds`, or the time is over, or `stop` was called.
    void wait(std::uint64_t rounds, std::chrono::milliseconds at_most) const;
    /// Nobody waits from now on.
    void stop();

private:
    void update(Now now);
    void forget(Now now);
    std::vector<ListedProcess> listed() const;

    Processes& source_;
    mutable std::mutex mutex_;  ///< of all below
    mutable std::condition_variable changed_;
    std::map<std::uint64_t, WatchedProcess> watched_;
    std::vector<ListedProcess> list_;
    std::uint64_t list_version_ = 0;
    std::uint64_t rounds_ = 0;
    bool stopped_ = false;
};

}  // namespace tensorpool::command::serve
