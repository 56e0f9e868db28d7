#pragma once

/// @file
/// The state from which all requests are answered. One thread takes a round per second. Requests
/// read a process themselves only for its timeline.

#include <mutex>
#include <utility>

#include <tensorpool/statistics_reader.hpp>

#include "serve/http/messages.hpp"
#include "serve/watch/history.hpp"

namespace tensorpool::command::serve {

/// A process that can be chosen on the page.
struct ListedProcess {
    std::uint64_t process = 0;
    std::string name;
    bool readable = false;
    std::string problem;  ///< why it cannot be read; "" if it can
    bool ended = false;   ///< only its history is available

    bool operator==(const ListedProcess&) const = default;
};

/// An attached process. Has the contract of `StatisticsReader`.
class Process {
public:
    virtual ~Process() = default;
    virtual bool is_running() const = 0;
    virtual ProcessSnapshot snapshot() = 0;
    virtual HeapProfile heap_profile() = 0;
    virtual TimelinePart entries_since(std::uint64_t number) = 0;
};

class Processes {
public:
    virtual ~Processes() = default;
    virtual std::vector<ObservedProcess> list() = 0;
    /// Throws AttachError.
    virtual std::unique_ptr<Process> attach(std::uint64_t process) = 0;
};

class LiveProcess final : public Process {
public:
    explicit LiveProcess(StatisticsReader reader) : reader_(std::move(reader)) {}
    bool is_running() const override { return reader_.is_running(); }
    ProcessSnapshot snapshot() override { return reader_.snapshot(); }
    HeapProfile heap_profile() override { return reader_.heap_profile(); }
    TimelinePart entries_since(std::uint64_t number) override {
        return reader_.entries_since(number);
    }

private:
    StatisticsReader reader_;
};

class LiveProcesses final : public Processes {
public:
    std::vector<ObservedProcess> list() override { return StatisticsReader::list(); }
    std::unique_ptr<Process> attach(std::uint64_t process) override {
        return std::make_unique<LiveProcess>(StatisticsReader::attach(process));
    }
};

std::string to_json(const std::vector<ListedProcess>& processes);
/// Returns the data of the event `snapshot`.
std::string to_json(const ProcessSnapshot& snapshot, const ProcessRates& rates);
std::string to_json(const TimelinePart& part);
/// Returns the data of the event `ended`: the time, in seconds since 1970.
std::string ended_json(std::uint64_t time_unix_ns);
std::string error_json(std::string_view message);

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

struct View {
    std::shared_ptr<const Moment> moment;  ///< never null
    bool ended = false;
    std::uint64_t ended_unix_ns = 0;
};

/// Whether the heap profiles of all processes are read and kept (history.hpp).
enum class KeepProfiles : bool { no, yes };

/// All functions may be called from any thread.
class Watcher {
public:
    static constexpr std::uint64_t remembered_ns = 600'000'000'000;
    /// The number of ended processes that are remembered. It is limited because a machine may start
    /// many short ones.
    static constexpr std::size_t remembered_count = 64;

    /// `source` must outlive this object.
    explicit Watcher(Processes& source, KeepProfiles keep = KeepProfiles::no)
        : source_(source), keep_(keep) {}

    void round(Now now);

    std::vector<ListedProcess> processes() const;
    std::uint64_t list_version() const;
    /// Returns nothing if no snapshot was taken; `why_not` returns the reason.
    std::optional<View> view(std::uint64_t process) const;
    std::string why_not(std::uint64_t process) const;
    /// Returns the data of the event `history`, up to `time_ns` of the monotonic clock; "" if there
    /// is none.
    std::string history_json(std::uint64_t process, std::uint64_t time_ns) const;
    TimelinePart entries_since(std::uint64_t process, std::uint64_t number);
    /// Returns the heap profile of a process at this time, in nanoseconds since 1970: the newest
    /// that was kept until then. 0: the present one, or the last if it has ended. Returns nothing
    /// if there is none.
    std::optional<HeapProfile> profile(std::uint64_t process, std::uint64_t time_unix_ns);
    /// Returns the times of the profiles that are kept, oldest first.
    std::vector<std::uint64_t> profile_times(std::uint64_t process) const;
    /// Returns the last snapshots of the processes that run now.
    std::vector<std::shared_ptr<const Moment>> running() const;

private:
    void update(Now now);
    void forget(Now now);
    std::vector<ListedProcess> listed() const;
    const WatchedProcess* find(std::uint64_t process) const;

    Processes& source_;
    const KeepProfiles keep_;
    mutable std::mutex mutex_;  ///< protects the members below
    std::map<std::uint64_t, WatchedProcess> watched_;
    std::vector<ListedProcess> list_;
    std::uint64_t list_version_ = 0;
};

/// Returns the process that a request names. Throws Refusal if there are no statistics of it.
std::uint64_t find_process(const Watcher& watcher, const Request& request);

}  // namespace tensorpool::command::serve
