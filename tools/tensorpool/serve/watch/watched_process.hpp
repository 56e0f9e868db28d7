#pragma once

/// @file
/// One process that the server watches: while it runs its reader, afterwards what is remembered.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tensorpool/process_snapshot.hpp>

#include "serve/watch/history.hpp"
#include "serve/watch/listed_process.hpp"
#include "serve/watch/processes.hpp"

namespace tensorpool::command::serve {

/// A process as it was in one round. Any thread.
class Moment {
public:
    Moment(ProcessSnapshot snapshot, ProcessRates rates);

    const ProcessSnapshot& snapshot() const noexcept { return snapshot_; }
    const ProcessRates& rates() const noexcept { return rates_; }
    /// The event `snapshot`: written once, by whoever asks first, for all who do.
    const std::string& json() const;

private:
    ProcessSnapshot snapshot_;
    ProcessRates rates_;
    mutable std::once_flag written_;
    mutable std::string json_;
};

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
