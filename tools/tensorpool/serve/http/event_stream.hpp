#pragma once

/// @file
/// The server-sent events for one page about one process (HTML standard, section 9.2).

#include <cstdint>
#include <memory>
#include <string>

#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// Sends `history` first, then `snapshot` after each round, `timeline` if there are new entries,
/// `processes` if that list changed, and `ended`. If a new process reuses the process id, the
/// stream begins again with `history`. Used by one thread at a time.
class EventStream {
public:
    /// `watcher` must outlive this object.
    EventStream(Watcher& watcher, std::uint64_t process) : watcher_(&watcher), process_(process) {}

    /// Returns all events since the last call; "" if there are none.
    std::string next();

private:
    void add_view(const View& view, std::string& events);
    void add_timeline(std::string& events);
    void add_processes(std::string& events);

    Watcher* watcher_;
    std::uint64_t process_;
    std::shared_ptr<const Moment> moment_;  ///< the last one sent
    std::uint64_t entry_ = 0;               ///< the number of the last entry sent
    std::uint64_t list_version_ = 0;
    bool ended_ = false;
};

}  // namespace tensorpool::command::serve
