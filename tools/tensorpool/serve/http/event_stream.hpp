#pragma once

/// @file
/// What one page is sent about one process, as server-sent events (HTML standard, section 9.2).

#include <cstdint>
#include <memory>
#include <string>

#include "serve/watch/watcher.hpp"

namespace tensorpool::command::serve {

/// `history`, then `snapshot` with each round, `timeline` when there are new entries, `processes`
/// when that list changed, and `ended`. A process that follows under the same number begins with
/// `history` again. One thread's at a time.
class EventStream {
public:
    /// `watcher` must outlive it.
    EventStream(Watcher& watcher, std::uint64_t process) : watcher_(&watcher), process_(process) {}

    /// All events since the last call; "" for none.
    std::string next();

private:
    void add_view(const View& view, std::string& events);
    void add_timeline(std::string& events);
    void add_processes(std::string& events);

    Watcher* watcher_;
    std::uint64_t process_;
    std::shared_ptr<const Moment> moment_;  ///< the last one sent
    std::uint64_t entry_ = 0;               ///< the last one sent
    std::uint64_t list_version_ = 0;
    bool ended_ = false;
};

}  // namespace tensorpool::command::serve
