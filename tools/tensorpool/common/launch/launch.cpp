#include "common/launch/launch.hpp"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include <tensorpool/budget.hpp>

#include "common/printable.hpp"

namespace tensorpool::command::launch {
namespace {

class Environment {
public:
    Environment() {
        for (char** one = environ; *one != nullptr; ++one) variables_.emplace_back(*one);
    }

    void remove(const std::string& variable) {
        std::erase_if(variables_,
                      [&](const std::string& one) { return one.starts_with(variable); });
    }
    void set(const std::string& name, const std::string& value) {
        remove(name + '=');
        variables_.push_back(name + '=' + value);
    }
    void set_by_default(const std::string& name, const std::string& value) {
        if (std::getenv(name.c_str()) == nullptr) set(name, value);
    }
    /// Inserts a value before those that the list holds already.
    void put_first(const std::string& name, const std::string& value) {
        const char* const present = std::getenv(name.c_str());
        const bool is_empty = present == nullptr || *present == '\0';
        set(name, is_empty ? value : value + ':' + present);
    }
    std::vector<std::string> take() { return std::move(variables_); }

private:
    std::vector<std::string> variables_;
};

/// The enabled Python parts, such as "numpy,torch".
std::string python_parts(const std::vector<PlannedPart>& parts) {
    std::string names;
    for (const PlannedPart& one : parts) {
        if (one.part == Part::malloc || one.part == Part::profile || !one.is_put()) continue;
        names += (names.empty() ? "" : ",") + std::string(name_of(one.part));
    }
    return names;
}

void put_parts(Environment& environment, const std::vector<PlannedPart>& parts,
               const PartPaths& paths) {
    if (is_put(parts, Part::malloc)) environment.put_first("LD_PRELOAD", paths.interposer);
    if (is_put(parts, Part::profile)) environment.set_by_default("TENSORPOOL_PROFILE", "on");
    const std::string names = python_parts(parts);
    if (names.empty()) return;
    environment.put_first("PYTHONPATH", paths.site_folder);
    environment.set("TENSORPOOL_PYTHON_PARTS", names);
    environment.set("TENSORPOOL_PYTHON_PACKAGE", paths.package);
}

/// Returns the program's environment as "NAME=value" strings: the environment of this process, with
/// the variables that enable the parts and the address of the observer.
std::vector<std::string> environment_for(const Arguments& arguments,
                                         const std::vector<PlannedPart>& parts,
                                         const PartPaths& paths, const std::string& observer) {
    Environment environment;
    put_parts(environment, parts, paths);
    environment.set("TENSORPOOL_OBSERVER", observer);
    environment.remove("TENSORPOOL_TRACE=observer");  // of an enclosing `tensorpool run`
    environment.set_by_default("TENSORPOOL_RETAIN_BACKGROUND", "auto");
    const auto set_given = [&](const char* name, const std::string& value) {
        if (!value.empty()) environment.set(name, value);
    };
    set_given("TENSORPOOL_MAX_CAPACITY", arguments.limit);
    // The program may start others in another folder.
    if (!arguments.budget.empty()) {
        environment.set("TENSORPOOL_BUDGETS", std::filesystem::absolute(arguments.budget));
    }
    set_given("TENSORPOOL_INTERPOSE_MIN", arguments.interpose_min);
    set_given("TENSORPOOL_TRACE", arguments.is_recorded ? "observer" : "");
    set_given("TENSORPOOL_TRACE_STACKS", arguments.stacks);
    return environment.take();
}

/// A ring holds 16,384 entries. At one call per microsecond, it is full after 16 ms.
constexpr int shortest_pause_ms = 1;
/// If one read returns this many entries, the next follows at once.
constexpr std::size_t many_entries = 8192;

constexpr int without_end = -1;

int next_pause(int pause, int longest, std::size_t entries) {
    if (entries >= many_entries) return 0;
    return entries != 0 ? shortest_pause_ms : std::clamp(pause * 2, shortest_pause_ms, longest);
}

bool wait(std::array<pollfd, 3>& watched, int pause_ms) {
    return ::poll(watched.data(), watched.size(), pause_ms) > 0;
}

/// Reads the messages sent before the program ended. The rounds are limited, because other
/// processes may still send.
void take_last_messages(Observer& observer, Family& family) {
    constexpr int max_rounds = 64;
    pollfd callers{observer.descriptor(), POLLIN, 0};
    for (int i = 0; i<max_rounds&& ::poll(&callers, 1, 0)> 0; ++i) {
        observer.take([&](Message message) { family.take(std::move(message)); });
    }
}

/// Waits for signals, messages and the ends of processes, and handles them, until the program has
/// ended. With `polls`, also calls `Family::look` and reads the recorded entries, at most a
/// thousand times a second.
void follow(Program& program, const Signals& signals, Observer& observer, Family& family,
            bool polls) {
    std::array<pollfd, 3> watched = {{{signals.descriptor(), POLLIN, 0},
                                      {observer.descriptor(), POLLIN, 0},
                                      {family.descriptor(), POLLIN, 0}}};
    const int longest_pause_ms = family.longest_pause_ms();
    int pause_ms = polls ? longest_pause_ms : without_end;
    while (!program.has_ended()) {
        if (wait(watched, pause_ms)) {
            for (const signalfd_siginfo& signal : signals.take()) program.take(signal);
            observer.take([&](Message message) { family.take(std::move(message)); });
            family.take_ended();
        }
        if (!polls) continue;
        family.look();
        pause_ms = next_pause(pause_ms, longest_pause_ms, family.take_entries());
    }
    take_last_messages(observer, family);
    family.finish();
}

double seconds_of(const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

/// Includes the usage of all children that have ended.
Outcome outcome_of(const Program& program) {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return {.code = program.code(),
            .signal = program.signal(),
            .user_seconds = seconds_of(usage.ru_utime),
            .system_seconds = seconds_of(usage.ru_stime),
            .minor_faults = static_cast<std::uint64_t>(usage.ru_minflt),
            .peak_resident_bytes = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024};
}

/// Raises the limit of descriptors as far as the system allows, because each process of the program
/// takes some. `restore` gives the program the former limit.
class DescriptorLimit {
public:
    DescriptorLimit() noexcept {
        getrlimit(RLIMIT_NOFILE, &before_);
        rlimit more = before_;
        more.rlim_cur = before_.rlim_max;
        setrlimit(RLIMIT_NOFILE, &more);
    }
    void restore() const noexcept { setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

/// Opens /dev/null for closed standard streams, so that none of our files gets such a number and
/// the report is not written into it. For the program, the streams stay closed.
void keep_standard_numbers() {
    for (int file = ::open("/dev/null", O_RDWR | O_CLOEXEC); file >= 0;
         file = ::open("/dev/null", O_RDWR | O_CLOEXEC)) {
        if (file > STDERR_FILENO) {
            ::close(file);
            return;
        }
    }
}

void check_budgets(const std::string& path) {
    if (path.empty()) return;
    const std::vector<std::string> problems = check_budget_file(path);
    if (problems.empty()) return;
    throw CommandError(
        run_failed,
        fmt::format("run: --budget {}", printable(fmt::format("{}", fmt::join(problems, "; ")))));
}

}  // namespace

Launch::Launch(const Arguments& arguments) : arguments_(arguments) {
    keep_standard_numbers();
    file_ = find_program(arguments.program.front());
    paths_ = find_part_paths();
    parts_ = plan_parts(arguments.with, paths_, file_);
    if (file_.empty()) throw no_such_program_error(arguments.program.front());
    if (!arguments.interpose_min.empty() && !is_put(parts_, Part::malloc)) {
        throw CommandError(wrong_usage, "run: --interpose-min needs the part malloc");
    }
    check_budgets(arguments.budget);
}

Outcome Launch::run(Family::Looks looks, Recorder* recorder, const Report& report) const {
    const Signals signals;
    const DescriptorLimit limit;
    Observer observer;
    const bool polls = recorder != nullptr || looks.live;
    Family family(recorder, std::move(looks));
    Program program(arguments_.program,
                    environment_for(arguments_, parts_, paths_, observer.name()), [&] {
                        limit.restore();
                        signals.restore();
                    });
    follow(program, signals, observer, family, polls);
    const Outcome outcome = outcome_of(program);
    if (report) report(outcome, family.results());
    return outcome;
}

int end_like(const Outcome& outcome) {
    if (outcome.signal == 0) return outcome.code;
    leave_no_core();
    take_effect(outcome.signal);
    // The first process of a container cannot be ended by this signal.
    return 128 + outcome.signal;
}

}  // namespace tensorpool::command::launch
