#include <mutex>

#include "base/never_destroyed.hpp"
#include "read/segment_finder.hpp"
#include "snapshot/segment_snapshot.hpp"
#include "statistics/sums/steady_sources.hpp"
#include "statistics/timeline/timeline_ring.hpp"

namespace tensorpool {
namespace {

using namespace statistics;
using namespace read;

/// The names of a process's threads. A name is read when its thread is first seen, and again from
/// time to time, because threads are named after they start. It is not read each time because many
/// threads would then cost a reader as many system calls.
class ThreadNames {
public:
    /// Fills in the names. `now_ns` is the time of any monotonic clock. Throws std::bad_alloc.
    void put_into(std::vector<ThreadStatistics>& threads, std::uint64_t process,
                  std::uint64_t now_ns) {
        if (now_ns - since_ns_ >= period_ns) {
            names_.clear();
            since_ns_ = now_ns;
        }
        for (ThreadStatistics& thread : threads) {
            if (thread.thread == 0) continue;
            const auto [known, is_new] = names_.try_emplace(thread.thread);
            if (is_new) known->second = platform::thread_name(process, thread.thread);
            thread.name = known->second;
        }
    }

private:
    static constexpr std::uint64_t period_ns = 1'000'000'000;

    std::uint64_t since_ns_ = 0;
    std::map<std::uint64_t, std::string> names_;
};

/// Remembers which processes hold a segment whose descriptor they closed. Finding that out requires
/// reading all mappings of a process, which would be too slow for a program that lists the
/// processes each second. Thread-safe.
class ClosedSegments {
public:
    /// Returns a result that is at most half a minute old. Throws std::bad_alloc.
    bool holds(std::uint64_t process, std::uint64_t now_ns) {
        const std::lock_guard guard(mutex_);
        if (now_ns - cleared_ns_ >= period_ns) {
            std::erase_if(
                seen_, [&](const auto& one) { return now_ns - one.second.since_ns >= period_ns; });
            cleared_ns_ = now_ns;
        }
        const auto known = seen_.find(process);
        if (known != seen_.end() && now_ns - known->second.since_ns < period_ns) {
            return known->second.holds;
        }
        const bool holds = has_closed_segment(process);
        seen_[process] = {now_ns, holds};
        return holds;
    }

private:
    static constexpr std::uint64_t period_ns = 30'000'000'000;
    struct Seen {
        std::uint64_t since_ns;
        bool holds;
    };

    std::mutex mutex_;
    std::uint64_t cleared_ns_ = 0;
    std::map<std::uint64_t, Seen> seen_;
};

[[noreturn]] void fail(std::uint64_t process, const std::string& name,
                       const SegmentProblem& problem) {
    std::string subject = "process " + std::to_string(process);
    if (!name.empty()) subject += " (" + name + ')';
    throw AttachError(problem.failure, "tensorpool: " + subject + ": " + problem.what);
}

void fail_if(const FoundSegment& segment, const std::optional<SegmentProblem>& problem) {
    if (problem) fail(segment.process, segment.name, *problem);
}

/// Returns whether the process has no file of a segment. It may still have closed the descriptor.
bool is_without(const Finding& finding) noexcept {
    return !finding.segment && !finding.is_being_made &&
           finding.problem.failure == AttachFailure::no_segment;
}

std::string name_of(std::uint64_t process) {
    const auto facts = platform::facts_of(process);
    return facts ? facts->name : std::string();
}

/// Returns whether a process that cannot be read is listed: one that holds a segment. That is
/// unknown for processes that may not be looked into.
bool holds_segment(AttachFailure failure) noexcept {
    return failure == AttachFailure::closed || failure == AttachFailure::other_version ||
           failure == AttachFailure::damaged;
}

void add(std::map<std::uint64_t, ObservedProcess>& all, std::uint64_t process,
         const Finding& finding) {
    if (finding.segment) {
        all[process] = {process, finding.segment->name, true, ""};
    } else if (holds_segment(finding.problem.failure)) {
        all[process] = {process, name_of(process), false, finding.problem.what};
    }
}

}  // namespace

struct StatisticsReader::State {
    explicit State(FoundSegment found)
        : segment(std::move(found)), view(std::exchange(segment.file, {})) {
        fail_if(segment, view.open());
    }

    FoundSegment segment;  // its file has moved to the view
    SegmentView view;
    SteadySources sources;
    ThreadNames names;
};

AttachError::AttachError(AttachFailure failure, const std::string& what)
    : std::runtime_error(what), failure_(failure) {}
AttachError::~AttachError() = default;

StatisticsReader::StatisticsReader(std::unique_ptr<State> state) noexcept
    : state_(std::move(state)) {}
StatisticsReader::StatisticsReader(StatisticsReader&&) noexcept = default;
StatisticsReader& StatisticsReader::operator=(StatisticsReader&&) noexcept = default;
StatisticsReader::~StatisticsReader() = default;

std::vector<ObservedProcess> StatisticsReader::list() {
    static base::NeverDestroyed<ClosedSegments> closed;
    std::map<std::uint64_t, ObservedProcess> all;
    for (const std::uint64_t process : platform::process_numbers()) {
        Finding finding = find_segment(process);
        if (is_without(finding) && closed.get().holds(process, platform::monotonic_clock_ns())) {
            finding.problem = closed_problem();
        }
        add(all, process, finding);
    }
    const std::string folder = segment_folder();
    if (!folder.empty()) {
        for (const std::uint64_t process : platform::numbers_in(folder)) {
            if (!all.contains(process)) add(all, process, find_in_folder(process));
        }
    }
    std::vector<ObservedProcess> list;
    list.reserve(all.size());
    for (auto& [process, one] : all) list.push_back(std::move(one));
    return list;
}

unsigned StatisticsReader::remove_dead() {
    unsigned removed = 0;
    const std::string folder = segment_folder();
    if (folder.empty()) return removed;
    for (const std::uint64_t process : platform::numbers_in(folder)) {
        const platform::ObservedFile file = platform::open_in(folder, process);
        if (file && is_dead(process, file) && platform::remove_in(folder, process, file)) ++removed;
    }
    return removed;
}

StatisticsReader StatisticsReader::attach(std::uint64_t process) {
    Finding finding = find_segment(process);
    if (is_without(finding) && has_closed_segment(process)) finding.problem = closed_problem();
    if (!finding.segment) {
        const std::string name = name_of(process);
        // A process that ended but was not yet waited for by its parent has no segment and no name.
        if (name.empty() && is_without(finding))
            finding.problem = problem_of(platform::Look::no_process);
        fail(process, name, finding.problem);
    }
    return StatisticsReader(std::make_unique<State>(std::move(*finding.segment)));
}

StatisticsReader StatisticsReader::take_over(int segment) {
    Finding finding = find_handed_over(platform::ObservedFile(segment));
    if (!finding.segment) {
        throw AttachError(finding.problem.failure,
                          "tensorpool: the segment handed over: " + finding.problem.what);
    }
    return StatisticsReader(std::make_unique<State>(std::move(*finding.segment)));
}

std::uint64_t StatisticsReader::process() const noexcept {
    return state_->segment.process;
}

bool StatisticsReader::is_running() const noexcept {
    try {
        return !look_after(state_->segment, state_->view.file());
    } catch (const std::bad_alloc&) {
        return true;  // unknown
    }
}

bool StatisticsReader::is_gone() const {
    const auto gone = look_after(state_->segment, state_->view.file());
    if (!state_->segment.is_handed_over) fail_if(state_->segment, gone);
    return gone.has_value();
}

HeapProfile StatisticsReader::heap_profile() {
    (void)is_gone();
    HeapProfile profile;
    profile.time_unix_ns = platform::wall_clock_ns();
    fail_if(state_->segment, snapshots::read_heap_profile(state_->view, profile));
    profile.process = process();
    return profile;
}

ProcessSnapshot StatisticsReader::snapshot() {
    const FoundSegment& segment = state_->segment;
    const bool gone = is_gone();
    ProcessSnapshot snapshot;
    fail_if(segment, snapshots::read_segment(state_->view, snapshot));
    snapshot.process = segment.process;
    const bool is_visible = !gone && segment.is_of_our_space;
    snapshots::add_facts(snapshot, is_visible);
    state_->sources.steady(snapshot.pools);
    if (is_visible) state_->names.put_into(snapshot.threads, segment.process, snapshot.time_ns);
    return snapshot;
}

TimelinePart StatisticsReader::entries_since(std::uint64_t number) {
    fail_if(state_->segment, state_->view.refresh_timeline());
    const SegmentImage& image = state_->view.earlier();
    const SegmentTimes times = {.made_ns = base::read(image.header().made_ns),
                                .made_unix_ns = base::read(image.header().made_unix_ns)};
    return read_entries(image.timeline(), base::read(image.header().entries), times, number);
}

}  // namespace tensorpool
