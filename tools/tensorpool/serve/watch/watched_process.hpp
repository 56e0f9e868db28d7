#pragma once

/// @file
/// One process that the server watches: its reader while it runs, then its history.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <tensorpool/process_snapshot.hpp>

#include "serve/watch/history.hpp"
#include "serve/watch/processes.hpp"

namespace tensorpool::command::serve {

/// The state of a process in one round. All functions may be called from any thread.
class Moment {
public:
    Moment(ProcessSnapshot snapshot, ProcessRates rates);

    const ProcessSnapshot& snapshot() const noexcept { return snapshot_; }
    const ProcessRates& rates() const noexcept { return rates_; }
    /// Returns the data of the event `snapshot`. It is written on the first call and shared by all
    /// callers.
    const std::string& json() const;

private:
    ProcessSnapshot snapshot_;
    ProcessRates rates_;
    mutable std::once_flag written_;
    mutable std::string json_;
};

/// The time of a round.
struct Now {
    std::uint64_t steady_ns = 0;  ///< of a monotonic clock
    std::uint64_t unix_ns = 0;    ///< since 1970
};

/// Used by one thread at a time. Functions throw only std::bad_alloc.
class WatchedProcess {
public:
    explicit WatchedProcess(std::uint64_t process) { listed_.process = process; }

    /// Updates the process from its entry in the list of processes: attaches if necessary and
    /// possible, and takes a snapshot.
    void update(const ObservedProcess& observed, Processes& source, Now now);
    /// Adds the present heap profile to those that are kept, if the last one is old enough.
    void keep_profile(Now now);
    /// To be called when the process is no longer in the list.
    void end(Now now);

    const ListedProcess& listed() const noexcept { return listed_; }
    const History& history() const noexcept { return history_; }
    /// The last snapshot, or null if none was taken.
    std::shared_ptr<const Moment> moment() const noexcept { return moment_; }
    Now ended_at() const noexcept { return ended_at_; }
    bool is_running() const { return reader_ != nullptr && reader_->is_running(); }
    TimelinePart entries_since(std::uint64_t number);
    const ProfileHistory& profiles() const noexcept { return profiles_; }
    /// Returns the present heap profile, or nothing if it cannot be read.
    std::optional<HeapProfile> read_profile();

private:
    void replace(const ObservedProcess& observed, Processes& source, Now now);
    void read(Processes& source);
    void keep(ProcessSnapshot snapshot);
    void fail(const AttachError& error);

    ListedProcess listed_;
    std::unique_ptr<Process> reader_;
    std::shared_ptr<const Moment> moment_;
    History history_;
    ProfileHistory profiles_;
    TimelinePart last_entries_;  ///< set when it has ended
    Now ended_at_;
};

}  // namespace tensorpool::command::serve
