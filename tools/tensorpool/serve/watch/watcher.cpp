#include "serve/watch/watcher.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include <nlohmann/json.hpp>

#include "common/html.hpp"

namespace tensorpool::command::serve {
namespace {

std::string seconds(std::uint64_t ns) {
    return fmt::format("{:.3f}", static_cast<double>(ns) / 1e9);
}

}  // namespace

std::string to_json(const std::vector<ListedProcess>& processes) {
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

std::string to_json(const ProcessSnapshot& snapshot, const ProcessRates& rates) {
    return fmt::format(R"({{"time":{},"snapshot":{},"rates":{},"tables":{}}})",
                       seconds(snapshot.time_unix_ns), tensorpool::to_json(snapshot),
                       tensorpool::to_json(rates), tables_json(record_groups(snapshot)));
}

std::string to_json(const TimelinePart& part) {
    std::string entries;
    for (const TimelineEntry& entry : part.entries) {
        if (!entries.empty()) entries += ',';
        entries += tensorpool::to_json(entry);
    }
    return fmt::format(R"({{"entries":[{}],"lost":{}}})", entries, part.lost);
}

std::string ended_json(std::uint64_t time_unix_ns) {
    return fmt::format(R"({{"time":{}}})", seconds(time_unix_ns));
}

std::string error_json(std::string_view message) {
    return json_line({{"error", message}});
}

Moment::Moment(ProcessSnapshot snapshot, ProcessRates rates)
    : snapshot_(std::move(snapshot)), rates_(std::move(rates)) {}

const std::string& Moment::json() const {
    std::call_once(written_, [this] { json_ = to_json(snapshot_, rates_); });
    return json_;
}

void WatchedProcess::update(const ObservedProcess& observed, Processes& source, Now now) {
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

/// The history of the ended process is kept if the new process with its id cannot be read.
void WatchedProcess::replace(const ObservedProcess& observed, Processes& source, Now now) {
    WatchedProcess next(listed_.process);
    next.update(observed, source, now);
    if (next.moment_) *this = std::move(next);
}

void WatchedProcess::read(Processes& source) {
    if (!reader_) reader_ = source.attach(listed_.process);
    keep(reader_->snapshot());
}

void WatchedProcess::keep(ProcessSnapshot snapshot) {
    ProcessRates rates;
    if (moment_) rates = difference(moment_->snapshot(), snapshot);
    history_.add(snapshot, rates);
    moment_ = std::make_shared<const Moment>(std::move(snapshot), std::move(rates));
}

void WatchedProcess::fail(const AttachError& error) {
    reader_.reset();
    listed_.readable = false;
    listed_.problem = error.what();
}

void WatchedProcess::end(Now now) {
    if (listed_.ended) return;
    // The segment of a process that has ended stays readable while it is open. Keeping many open
    // for ten minutes would take descriptors, so the entries are read now.
    last_entries_ = entries_since(0);
    reader_.reset();
    listed_.ended = true;
    ended_at_ = now;
}

void WatchedProcess::keep_profile(Now now) {
    if (!profiles_.is_due(now.steady_ns)) return;
    if (auto profile = read_profile()) profiles_.add(std::move(*profile), now.steady_ns);
}

std::optional<HeapProfile> WatchedProcess::read_profile() {
    if (!reader_) return std::nullopt;
    try {
        return reader_->heap_profile();
    } catch (const AttachError&) {
        return std::nullopt;
    }
}

TimelinePart WatchedProcess::entries_since(std::uint64_t number) {
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

void Watcher::round(Now now) {
    const std::lock_guard lock(mutex_);
    update(now);
    forget(now);
    std::vector<ListedProcess> list = listed();
    if (list != list_) ++list_version_;
    list_ = std::move(list);
}

void Watcher::update(Now now) {
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

void Watcher::forget(Now now) {
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

std::vector<ListedProcess> Watcher::listed() const {
    std::vector<ListedProcess> list;
    for (const auto& [process, watched] : watched_) list.push_back(watched.listed());
    return list;
}

std::vector<ListedProcess> Watcher::processes() const {
    const std::lock_guard lock(mutex_);
    return list_;
}

std::uint64_t Watcher::list_version() const {
    const std::lock_guard lock(mutex_);
    return list_version_;
}

const WatchedProcess* Watcher::find(std::uint64_t process) const {
    const auto found = watched_.find(process);
    return found == watched_.end() ? nullptr : &found->second;
}

std::optional<View> Watcher::view(std::uint64_t process) const {
    const std::lock_guard lock(mutex_);
    const WatchedProcess* const watched = find(process);
    if (watched == nullptr || watched->moment() == nullptr) return std::nullopt;
    return View{watched->moment(), watched->listed().ended, watched->ended_at().unix_ns};
}

std::string Watcher::why_not(std::uint64_t process) const {
    const std::lock_guard lock(mutex_);
    if (const WatchedProcess* const watched = find(process)) {
        return fmt::format("process {} cannot be read: {}", process, watched->listed().problem);
    }
    return fmt::format(
        "process {} has no visible pool; /api/processes lists the processes that have", process);
}

std::string Watcher::history_json(std::uint64_t process, std::uint64_t time_ns) const {
    const std::lock_guard lock(mutex_);
    const WatchedProcess* const watched = find(process);
    return watched == nullptr ? "" : watched->history().to_json(process, time_ns);
}

TimelinePart Watcher::entries_since(std::uint64_t process, std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    const auto found = watched_.find(process);
    return found == watched_.end() ? TimelinePart() : found->second.entries_since(number);
}

std::optional<HeapProfile> Watcher::profile(std::uint64_t process, std::uint64_t time_unix_ns) {
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

std::vector<std::uint64_t> Watcher::profile_times(std::uint64_t process) const {
    const std::lock_guard lock(mutex_);
    const WatchedProcess* const watched = find(process);
    return watched == nullptr ? std::vector<std::uint64_t>() : watched->profiles().times();
}

std::vector<std::shared_ptr<const Moment>> Watcher::running() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<const Moment>> moments;
    for (const auto& [process, watched] : watched_) {
        if (watched.moment() && watched.is_running()) moments.push_back(watched.moment());
    }
    return moments;
}

std::uint64_t find_process(const Watcher& watcher, const Request& request) {
    const std::optional<std::uint64_t> process = request.number("process");
    if (!process) {
        throw Refusal(400, "no process given: add ?process= with an id from /api/processes");
    }
    if (!watcher.view(*process)) throw Refusal(404, watcher.why_not(*process));
    return *process;
}

}  // namespace tensorpool::command::serve
