#pragma once

/// @file
/// One process that the server watches: while it runs its reader, afterwards what is remembered.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "serve/watch/history.hpp"
#include "serve/watch/listed_process.hpp"
#include "serve/watch/moment.hpp"
#include "serve/watch/processes.hpp"

namespace tensorpool::command::serve {

/// When a round takes place.
struct Now {
    std::uint64_t steady_ns = 0;  ///< of a clock that nobody sets
    std::uint64_t unix_ns = 0;    ///< since 1970
};

/// One thread's at a time. Nothing here throws but std::bad_alloc.
class WatchedProcess {
public:
    explicit WatchedProcess(std::uint64_t process) { listed_.process = process; }

    /// As the list of processes has it now: attaches where that is due and possible, and takes a
    /// snapshot.
    void update(const ObservedProcess& observed, Processes& source, Now now);
    /// The process is no longer in the list.
    void end(Now now);

    const ListedProcess& listed() const noexcept { return listed_; }
    const History& history() const noexcept { return history_; }
    /// Null until a snapshot was taken.
    std::shared_ptr<const Moment> moment() const noexcept { return moment_; }
    Now ended_at() const noexcept { return ended_at_; }
    bool is_running() const { return reader_ != nullptr && reader_->is_running(); }
    TimelinePart entries_since(std::uint64_t number);

private:
    void replace(const ObservedProcess& observed, Processes& source, Now now);
    void read(Processes& source);
    void keep(ProcessSnapshot snapshot);
    void fail(const AttachError& error);

    ListedProcess listed_;
    std::unique_ptr<Process> reader_;
    std::shared_ptr<const Moment> moment_;
    History history_;
    TimelinePart last_entries_;  ///< once it has ended
    Now ended_at_;
};

}  // namespace tensorpool::command::serve
