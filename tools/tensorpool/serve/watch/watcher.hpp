#pragma once

/// @file
/// The state from which all requests are answered. One thread takes a round per second. Requests
/// read a process themselves only for its timeline.

#include <mutex>
#include <set>

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

inline std::string to_json(const std::vector<ListedProcess>& processes) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ListedProcess& listed : processes) {
        list.push_back({{"ended", listed.ended},
                        {"name", listed.name},
                        {"problem", listed.problem},
                        {"process", listed.process},
                        {"readable", listed.readable}});
    }
    return json_line(list);
}

inline std::string seconds(std::uint64_t ns) {
    return fmt::format("{:.3f}", static_cast<double>(ns) / 1e9);
}

/// Returns the data of the event `snapshot`.
inline std::string to_json(const ProcessSnapshot& snapshot, const ProcessRates& rates) {
    return fmt::format(R"({{"time":{},"snapshot":{},"rates":{},"tables":{}}})",
                       seconds(snapshot.time_unix_ns), tensorpool::to_json(snapshot),
                       tensorpool::to_json(rates), tables_json(record_groups(snapshot)));
}

inline std::string to_json(const TimelinePart& part) {
    std::string entries;
    for (const TimelineEntry& entry : part.entries) {
        if (!entries.empty()) entries += ',';
        entries += tensorpool::to_json(entry);
    }
    return fmt::format(R"({{"entries":[{}],"lost":{}}})", entries, part.lost);
}

/// The state of a process in one round. All functions may be called from any thread.
class Moment {
public:
    Moment(ProcessSnapshot snapshot, ProcessRates rates)
        : snapshot_(std::move(snapshot)), rates_(std::move(rates)) {}

    const ProcessSnapshot& snapshot() const noexcept { return snapshot_; }
    const ProcessRates& rates() const noexcept { return rates_; }
    /// Returns the data of the event `snapshot`. It is written on the first call and shared by all
    /// callers.
    const std::string& json() const {
        std::call_once(written_, [this] { json_ = to_json(snapshot_, rates_); });
        return json_;
    }

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
    void update(const ObservedProcess& observed, Processes& source, Now now) {
        if (listed_.ended) return replace(observed, source, now);
        // The process may have executed another program, which has another segment.
        if (observed.name != listed_.name) reader_.reset();
        listed_.name = observed.name;
        listed_.readable = observed.readable;
        listed_.problem = observed.problem;
        if (!observed.readable) return reader_.reset();
        try {
            read(source);
        } catch (const AttachError& error) {
            if (error.failure() == AttachFailure::ended && moment_) return end(now);
            fail(error);
        }
    }
    /// Adds the present heap profile to those that are kept, if the last one is old enough.
    void keep_profile(Now now) {
        if (!profiles_.is_due(now.steady_ns)) return;
        if (auto profile = read_profile()) profiles_.add(std::move(*profile), now.steady_ns);
    }
    /// To be called when the process is no longer in the list.
    void end(Now now) {
        if (listed_.ended) return;
        // The segment of a process that has ended stays readable while it is open. Keeping many
        // open for ten minutes would take descriptors, so the entries are read now.
        last_entries_ = entries_since(0);
        reader_.reset();
        listed_.ended = true;
        ended_at_ = now;
    }

    const ListedProcess& listed() const noexcept { return listed_; }
    const History& history() const noexcept { return history_; }
    /// The last snapshot, or null if none was taken.
    std::shared_ptr<const Moment> moment() const noexcept { return moment_; }
    Now ended_at() const noexcept { return ended_at_; }
    bool is_running() const { return reader_ != nullptr && reader_->is_running(); }
    TimelinePart entries_since(std::uint64_t number) {
        if (listed_.ended) {
            TimelinePart part = last_entries_;
            std::erase_if(part.entries, [&](const auto& entry) { return entry.number <= number; });
            if (number != 0) part.lost = 0;
            return part;
        }
        TimelinePart nothing;
        nothing.last = number;
        if (!reader_) return nothing;
        try {
            return reader_->entries_since(number);
        } catch (const AttachError&) {
            return nothing;
        }
    }
    const ProfileHistory& profiles() const noexcept { return profiles_; }
    /// Returns the present heap profile, or nothing if it cannot be read.
    std::optional<HeapProfile> read_profile() {
        if (!reader_) return std::nullopt;
        try {
            return reader_->heap_profile();
        } catch (const AttachError&) {
            return std::nullopt;
        }
    }

private:
    /// The history of the ended process is kept if the new process with its id cannot be read.
    void replace(const ObservedProcess& observed, Processes& source, Now now) {
        WatchedProcess next(listed_.process);
        next.update(observed, source, now);
        if (next.moment_) *this = std::move(next);
    }
    void read(Processes& source) {
        if (!reader_) reader_ = source.attach(listed_.process);
        keep(reader_->snapshot());
    }
    void keep(ProcessSnapshot snapshot) {
        ProcessRates rates;
        if (moment_) rates = difference(moment_->snapshot(), snapshot);
        history_.add(snapshot, rates);
        moment_ = std::make_shared<const Moment>(std::move(snapshot), std::move(rates));
    }
    void fail(const AttachError& error) {
        reader_.reset();
        listed_.readable = false;
        listed_.problem = error.what();
    }

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

    void round(Now now) {
        const std::lock_guard lock(mutex_);
        update(now);
        forget(now);
        std::vector<ListedProcess> list = listed();
        if (list != list_) ++list_version_;
        list_ = std::move(list);
    }

    std::vector<ListedProcess> processes() const {
        const std::lock_guard lock(mutex_);
        return list_;
    }
    std::uint64_t list_version() const {
        const std::lock_guard lock(mutex_);
        return list_version_;
    }
    /// Returns nothing if no snapshot was taken; `why_not` returns the reason.
    std::optional<View> view(std::uint64_t process) const {
        const std::lock_guard lock(mutex_);
        const WatchedProcess* const watched = find(process);
        if (watched == nullptr || watched->moment() == nullptr) return std::nullopt;
        return View{watched->moment(), watched->listed().ended, watched->ended_at().unix_ns};
    }
    std::string why_not(std::uint64_t process) const {
        const std::lock_guard lock(mutex_);
        if (const WatchedProcess* const watched = find(process)) {
            return fmt::format("process {} cannot be read: {}", process, watched->listed().problem);
        }
        return fmt::format(
            "process {} has no visible pool; /api/processes lists the processes that have",
            process);
    }
    /// Returns the data of the event `history`, up to `time_ns` of the monotonic clock; "" if there
    /// is none.
    std::string history_json(std::uint64_t process, std::uint64_t time_ns) const {
        const std::lock_guard lock(mutex_);
        const WatchedProcess* const watched = find(process);
        return watched == nullptr ? "" : watched->history().to_json(process, time_ns);
    }
    TimelinePart entries_since(std::uint64_t process, std::uint64_t number) {
        const std::lock_guard lock(mutex_);
        const auto found = watched_.find(process);
        return found == watched_.end() ? TimelinePart() : found->second.entries_since(number);
    }
    /// Returns the heap profile of a process at this time, in nanoseconds since 1970: the newest
    /// that was kept until then. 0: the present one, or the last if it has ended. Returns nothing
    /// if there is none.
    std::optional<HeapProfile> profile(std::uint64_t process, std::uint64_t time_unix_ns) {
        const std::lock_guard lock(mutex_);
        const auto found = watched_.find(process);
        if (found == watched_.end()) return std::nullopt;
        if (time_unix_ns == 0) {
            if (auto present = found->second.read_profile()) return present;
            time_unix_ns = std::numeric_limits<std::uint64_t>::max();
        }
        const auto kept = found->second.profiles().at(time_unix_ns);
        return kept ? std::optional(*kept) : std::nullopt;
    }
    /// Returns the times of the profiles that are kept, oldest first.
    std::vector<std::uint64_t> profile_times(std::uint64_t process) const {
        const std::lock_guard lock(mutex_);
        const WatchedProcess* const watched = find(process);
        return watched == nullptr ? std::vector<std::uint64_t>() : watched->profiles().times();
    }
    /// Returns the last snapshots of the processes that run now.
    std::vector<std::shared_ptr<const Moment>> running() const {
        const std::lock_guard lock(mutex_);
        std::vector<std::shared_ptr<const Moment>> moments;
        for (const auto& [process, watched] : watched_) {
            if (watched.moment() && watched.is_running()) moments.push_back(watched.moment());
        }
        return moments;
    }

private:
    void update(Now now) {
        std::set<std::uint64_t> seen;
        for (const ObservedProcess& observed : source_.list()) {
            seen.insert(observed.process);
            WatchedProcess& watched =
                watched_.try_emplace(observed.process, observed.process).first->second;
            watched.update(observed, source_, now);
            if (keep_ == KeepProfiles::yes) watched.keep_profile(now);
        }
        for (auto& [process, watched] : watched_) {
            if (!seen.contains(process)) watched.end(now);
        }
    }
    void forget(Now now) {
        std::vector<std::uint64_t> ended_at;
        for (const auto& [process, watched] : watched_) {
            if (watched.listed().ended) ended_at.push_back(watched.ended_at().steady_ns);
        }
        std::uint64_t oldest = now.steady_ns < remembered_ns ? 0 : now.steady_ns - remembered_ns;
        if (ended_at.size() > remembered_count) {
            std::sort(ended_at.begin(), ended_at.end(), std::greater<>());
            oldest = std::max(oldest, ended_at[remembered_count] + 1);
        }
        std::erase_if(watched_, [oldest](const auto& entry) {
            const WatchedProcess& watched = entry.second;
            return watched.listed().ended &&
                   (watched.moment() == nullptr || watched.ended_at().steady_ns < oldest);
        });
    }
    std::vector<ListedProcess> listed() const {
        std::vector<ListedProcess> list;
        for (const auto& [process, watched] : watched_) list.push_back(watched.listed());
        return list;
    }
    const WatchedProcess* find(std::uint64_t process) const {
        const auto found = watched_.find(process);
        return found == watched_.end() ? nullptr : &found->second;
    }

    Processes& source_;
    const KeepProfiles keep_;
    mutable std::mutex mutex_;  ///< protects the members below
    std::map<std::uint64_t, WatchedProcess> watched_;
    std::vector<ListedProcess> list_;
    std::uint64_t list_version_ = 0;
};

/// Returns the data of the event `ended`: the time, in seconds since 1970.
inline std::string ended_json(std::uint64_t time_unix_ns) {
    return fmt::format(R"({{"time":{}}})", seconds(time_unix_ns));
}

inline std::string error_json(std::string_view message) {
    return json_line({{"error", message}});
}

/// Returns the process that a request names. Throws Refusal if there are no statistics of it.
inline std::uint64_t find_process(const Watcher& watcher, const Request& request) {
    const std::optional<std::uint64_t> process = request.number("process");
    if (!process) {
        throw Refusal(400, "no process given: add ?process= with an id from /api/processes");
    }
    if (!watcher.view(*process)) throw Refusal(404, watcher.why_not(*process));
    return *process;
}

}  // namespace tensorpool::command::serve
