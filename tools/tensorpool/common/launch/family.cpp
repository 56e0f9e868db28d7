#include "common/launch/family.hpp"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "common/printable.hpp"
#include "common/settings.hpp"
#include "common/target.hpp"

namespace tensorpool::command::launch {
namespace {

constexpr std::size_t max_results = 20;
constexpr std::size_t max_problems = 5;

bool is_larger(const ProcessResult& one, const ProcessResult& other) {
    return one.totals.peak_bytes > other.totals.peak_bytes;
}

void add_once(std::vector<std::string>& texts, const std::string& text) {
    if (texts.size() == max_problems || std::ranges::find(texts, text) != texts.end()) return;
    texts.push_back(text);
}

namespace fs = std::filesystem;

constexpr std::size_t max_members = 4096;
constexpr std::size_t descriptors_of_member = 4;
constexpr std::size_t descriptors_of_ours = 128;

/// The number of members for which there are enough descriptors.
std::size_t room_for_members() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    const std::size_t max = limit.rlim_cur;
    const std::size_t left = max > descriptors_of_ours ? max - descriptors_of_ours : 0;
    return std::clamp<std::size_t>(left / descriptors_of_member, 1, max_members);
}

/// Returns the name of a memory file (memfd_create(2)), which tells the files of one message apart.
/// Their contents are validated by the code that attaches to them.
std::string name_of(const Descriptor& file) {
    std::error_code ignored;
    return fs::read_symlink("/proc/self/fd/" + std::to_string(file.number()), ignored);
}

struct Files {
    Descriptor segment;
    Descriptor control;
    Descriptor rings;
};

Files sort_out(std::vector<Descriptor> files) {
    Files sorted;
    for (Descriptor& file : files) {
        const std::string name = name_of(file);
        if (name.starts_with("/memfd:tensorpool-control")) {
            sorted.control = std::move(file);
        } else if (name.starts_with("/memfd:tensorpool-rings")) {
            sorted.rings = std::move(file);
        } else {
            sorted.segment = std::move(file);
        }
    }
    return sorted;
}

// Needs Linux 5.3. The C library has no wrapper.
Descriptor end_of(pid_t process) {
    return Descriptor(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
}

std::uint64_t number_of(pid_t process) {
    return static_cast<std::uint64_t>(process);
}

/// Stops the recording. Later entries are not read.
void end_recording(std::optional<LiveTrace>& trace) {
    trace->stop();
    trace.reset();
}

}  // namespace

void Results::add(ProcessSnapshot snapshot, bool has_ended) {
    ProcessResult result{std::move(snapshot), {}, has_ended};
    result.totals = add_up(result.snapshot);
    const auto position = std::ranges::upper_bound(largest_, result, is_larger);
    largest_.insert(position, std::move(result));
    if (largest_.size() <= max_results) return;
    const Totals& left = largest_.back().totals;
    ++others_;
    totals_of_others_.peak_bytes += left.peak_bytes;
    totals_of_others_.allocations += left.allocations;
    totals_of_others_.failures += left.failures;
    largest_.pop_back();
}

void Results::add_note(const std::string& note) {
    const std::size_t end = note.find('\n');
    const std::string name = note.substr(0, end);
    for (const Part part : all_parts) {
        if (name_of(part) != name) continue;
        PartNotes& notes = notes_[static_cast<std::size_t>(part)];
        if (end == std::string::npos) {
            ++notes.programs;
        } else {
            add_once(notes.problems, printable(note.substr(end + 1)));
        }
    }
}

void Results::add_problem(const std::string& what) {
    add_once(problems_, printable(what));
}

Family::Family(Recorder* recorder, Looks looks)
    : recorder_(recorder),
      looks_(std::move(looks)),
      events_(::epoll_create1(EPOLL_CLOEXEC)),
      max_members_(room_for_members()) {
    if (!events_) throw CommandError(run_failed, "run: no descriptor left; look at `ulimit -n`");
}

void Family::take(Message message) {
    if (!message.note.empty()) results_.add_note(message.note);
    if (message.files.empty()) return;
    try {
        add(std::move(message));
    } catch (const AttachError& error) {
        results_.add_problem(to_command_error(error).what());
    }
}

void Family::add(Message message) {
    make_room(message.process);
    Files files = sort_out(std::move(message.files));
    // A recording without statistics cannot be attributed to a process.
    if (!files.segment) return;
    StatisticsReader reader = StatisticsReader::take_over(files.segment.release());
    members_.push_back({++last_number_, message.process, end_of(message.process), std::move(reader),
                        take_recording(std::move(files.control), std::move(files.rings))});
    Member& member = members_.back();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = member.number;
    if (member.end) {
        ::epoll_ctl(events_.number(), EPOLL_CTL_ADD, member.end.number(), &event);
    } else if (!member.reader.is_running()) {
        let_go(std::prev(members_.end()), true);
    }
}

// Removes members that have ended. A process that runs another program has handed over new files.
// If there are too many members, some may have ended without notice.
void Family::make_room(pid_t process) {
    const bool is_full = members_.size() >= max_members_;
    for (auto member = members_.begin(); member != members_.end();) {
        const bool checked = is_full || member->process == process;
        member = checked && !member->reader.is_running() ? let_go(member, true) : std::next(member);
    }
    if (members_.size() >= max_members_) let_go(members_.begin(), false);
}

std::optional<LiveTrace> Family::take_recording(Descriptor control, Descriptor rings) {
    if (recorder_ == nullptr || !control || !rings) return std::nullopt;
    try {
        std::optional<LiveTrace> taken = LiveTrace::take_over(control.release(), rings.release());
        if (recorder_->is_full()) end_recording(taken);
        return taken;
    } catch (const AttachError& error) {
        results_.add_problem(to_command_error(error).what());
        return std::nullopt;
    }
}

void Family::take_ended() {
    std::array<epoll_event, 64> events;
    const int count = ::epoll_wait(events_.number(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
        const std::uint64_t number = events[static_cast<std::size_t>(i)].data.u64;
        const auto member = std::ranges::find(members_, number, &Member::number);
        if (member != members_.end()) let_go(member, true);
    }
}

std::size_t Family::take_entries() {
    std::size_t max = 0;
    for (Member& member : members_) {
        if (!member.trace) continue;
        if (recorder_->is_full()) {
            end_recording(member.trace);
            continue;
        }
        try {
            max = std::max(max, recorder_->look(number_of(member.process), *member.trace));
        } catch (const AttachError& error) {
            results_.add_problem(to_command_error(error).what());
            member.trace.reset();
        }
    }
    return max;
}

void Family::look() {
    for (Member& member : members_) {
        try {
            if (looks_.live) looks_.live(member.reader);
        } catch (const AttachError&) {
            // It cannot be read now. `let_go` reports if it cannot be read at its end either.
        }
    }
}

void Family::finish() {
    take_ended();
    while (!members_.empty()) {
        Member& member = members_.front();
        const bool has_ended = !member.reader.is_running();
        if (!has_ended && member.trace) member.trace->stop();
        let_go(members_.begin(), has_ended);
    }
    if (recorder_ != nullptr) recorder_->flush();
}

Family::Members::iterator Family::let_go(Members::iterator member, bool has_ended) {
    const auto attempt = [&](const auto& what) {
        try {
            what();
        } catch (const AttachError& error) {
            results_.add_problem(to_command_error(error).what());
        }
    };
    if (member->trace)
        attempt([&] { recorder_->finish(number_of(member->process), *member->trace); });
    attempt([&] { results_.add(member->reader.snapshot(), has_ended); });
    if (looks_.last) attempt([&] { looks_.last(member->reader); });
    return members_.erase(member);
}

}  // namespace tensorpool::command::launch
