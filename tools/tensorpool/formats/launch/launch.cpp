#include "formats/launch/launch.hpp"

#include <fmt/ranges.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include <fstream>

#include <tensorpool/budget.hpp>

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
        const std::string present = variable(name.c_str());
        set(name, present.empty() ? value : value + ':' + present);
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

sigset_t taken_signals() noexcept {
    sigset_t signals;
    sigfillset(&signals);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
        sigdelset(&signals, fault);
    }
    return signals;
}

CommandError cannot_run(const std::string& word, int error) {
    const std::string name = printable(word);
    if (error != ENOENT) {
        return {cannot_run_program,
                fmt::format("run: {} cannot be run: {}", name, std::strerror(error))};
    }
    const bool is_path = word.find('/') != std::string::npos;
    return {no_such_program,
            is_path ? fmt::format("run: {}: the program or its interpreter does not exist", name)
                    : fmt::format("run: {}: not found in any folder of PATH", name)};
}

/// Runs in the child. If the program cannot be run, reports the error through the pipe.
[[noreturn]] void become(const std::vector<char*>& arguments, const std::vector<char*>& variables,
                         const Descriptor& pipe) {
    ::execvpe(arguments[0], arguments.data(), variables.data());
    const int error = errno;
    [[maybe_unused]] const ssize_t written = ::write(pipe.number(), &error, sizeof error);
    ::_exit(no_such_program);
}

/// Reads the error that the child reports before it becomes the program, or 0 if there is none.
int error_from(const Descriptor& pipe) {
    int error = 0;
    ssize_t got = 0;
    do got = ::read(pipe.number(), &error, sizeof error);
    while (got < 0 && errno == EINTR);
    return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

/// Whether a process sent the signal, by kill(2) or similar. Signals of the terminal and the kernel
/// reach the whole process group, and therefore the program itself.
bool is_from_process(const signalfd_siginfo& signal) noexcept {
    return signal.ssi_code == SI_USER || signal.ssi_code == SI_QUEUE || signal.ssi_code == SI_TKILL;
}

/// Whether the kernel sent it to this process alone: the hangup of the terminal, which the first
/// process of a session must pass on, or an alarm that was set before this process executed
/// tensorpool (execve(2)).
bool is_systems_to_us(const signalfd_siginfo& signal) noexcept {
    if (signal.ssi_code != SI_KERNEL) return false;
    const bool is_hangup = signal.ssi_signo == SIGHUP || signal.ssi_signo == SIGCONT;
    return is_hangup ? ::getsid(0) == ::getpid() : signal.ssi_signo == SIGALRM;
}

/// Disables core dumps of this process, so that it does not overwrite the program's.
void leave_no_core() noexcept {
    const rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
}

/// Performs the default action of the signal, which ends the process or stops it for a while.
void take_effect(int signal) noexcept {
    struct sigaction usual {};
    struct sigaction before {};
    usual.sa_handler = SIG_DFL;
    sigaction(signal, &usual, &before);
    sigset_t one;
    sigset_t mask;
    sigemptyset(&one);
    sigaddset(&one, signal);
    pthread_sigmask(SIG_UNBLOCK, &one, &mask);
    raise(signal);
    // Reached after a stop, when the process continues.
    pthread_sigmask(SIG_SETMASK, &mask, nullptr);
    sigaction(signal, &before, nullptr);
}

/// Receives the signals of this process through a descriptor, except those of its own faults.
/// Construct it before starting the program; `restore` gives the program the caller's signal state.
class Signals {
public:
    /// Throws CommandError.
    Signals() {
        const sigset_t signals = taken_signals();
        pthread_sigmask(SIG_BLOCK, &signals, &before_);
        // A process that ignores SIGCHLD is not notified of the state of its children.
        struct sigaction usual {};
        usual.sa_handler = SIG_DFL;
        sigaction(SIGCHLD, &usual, &child_before_);
        descriptor_ = Descriptor(signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
        if (!descriptor_) {
            restore();
            throw CommandError(run_failed,
                               "run: out of file descriptors for signals; raise `ulimit -n`");
        }
    }
    /// Drops pending signals, and restores the former handling.
    ~Signals() {
        take();
        restore();
    }
    Signals(const Signals&) = delete;
    Signals& operator=(const Signals&) = delete;

    int descriptor() const noexcept { return descriptor_.number(); }
    /// Returns the signals that arrived since the last call.
    std::vector<signalfd_siginfo> take() const {
        std::vector<signalfd_siginfo> came;
        signalfd_siginfo one{};
        while (::read(descriptor_.number(), &one, sizeof one) == static_cast<ssize_t>(sizeof one)) {
            came.push_back(one);
        }
        return came;
    }
    /// Restores the former signal state. To be called in the child.
    void restore() const noexcept {
        sigaction(SIGCHLD, &child_before_, nullptr);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }

private:
    sigset_t before_{};
    struct sigaction child_before_ {};
    Descriptor descriptor_;
};

/// The program, as a child of this process in the same process group, with its terminal and
/// streams. Signals from the terminal therefore reach it as if it ran alone.
class Program {
public:
    /// Starts the program. `restore` is called in the child and restores the signal masks and
    /// limits of the caller. Throws CommandError, with code 127 if the program does not exist and
    /// 126 if it cannot be run.
    Program(const std::vector<std::string>& command, std::vector<std::string> environment,
            const std::function<void()>& restore) {
        std::vector<std::string> copies = command;
        const std::vector<char*> arguments = null_ended(copies);
        const std::vector<char*> variables = null_ended(environment);
        int ends[2];
        if (::pipe2(ends, O_CLOEXEC) != 0) {
            throw CommandError(run_failed,
                               "run: out of file descriptors for a pipe; raise `ulimit -n`");
        }
        const Descriptor reading(ends[0]);
        Descriptor writing(ends[1]);
        process_ = ::fork();
        if (process_ < 0) {
            throw CommandError(
                run_failed, fmt::format("run: cannot create a process: {}", std::strerror(errno)));
        }
        if (process_ == 0) {
            restore();
            become(arguments, variables, writing);
        }
        writing = Descriptor();
        const int error = error_from(reading);
        if (error == 0) return;
        ::waitpid(process_, nullptr, 0);
        throw cannot_run(command.front(), error);
    }

    bool has_ended() const noexcept { return has_ended_; }
    /// The exit code of a program that has ended, or 0.
    int code() const noexcept { return code_; }
    /// The signal that ended it, or 0.
    int signal() const noexcept { return signal_; }

    /// Handles a signal to this process: passes it on, or checks the state of the program, and
    /// stops if the program has stopped.
    void take(const signalfd_siginfo& signal) {
        const auto number = static_cast<int>(signal.ssi_signo);
        if (number == SIGCHLD) return look();
        if (has_ended_) return;
        if (is_systems_to_us(signal)) return pass_on(signal);
        if (!is_from_process(signal)) return;
        // If a shell's `fg` sent it, the program has received its own.
        if (number == SIGCONT && std::exchange(stopped_too_, false) && !is_stopped()) return;
        // Skips signals that the program sent to its whole process group, and those that our own
        // writing raises (SIGXFSZ, SIGPIPE).
        const auto sender = static_cast<pid_t>(signal.ssi_pid);
        if (sender != process_ && sender != ::getpid()) pass_on(signal);
    }

private:
    void look() {
        for (;;) {
            siginfo_t info{};
            const int wanted = WEXITED | WSTOPPED | WNOHANG;
            if (::waitid(P_PID, static_cast<id_t>(process_), &info, wanted) != 0 ||
                info.si_pid == 0) {
                return;
            }
            if (info.si_code == CLD_STOPPED) {
                // Stops as well, so that the shell notices. A process stopped by SIGSTOP alone is
                // also continued alone.
                stopped_too_ = info.si_status != SIGSTOP;
                if (stopped_too_) take_effect(info.si_status);
                continue;
            }
            if (info.si_code != CLD_EXITED && info.si_code != CLD_KILLED &&
                info.si_code != CLD_DUMPED) {
                continue;
            }
            has_ended_ = true;
            (info.si_code == CLD_EXITED ? code_ : signal_) = info.si_status;
            return;
        }
    }
    // proc(5): the state follows the name, which is in parentheses and may contain any character.
    bool is_stopped() const {
        std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
        std::string line;
        std::getline(file, line, '\0');
        const std::size_t end = line.rfind(") ");
        return end != std::string::npos && line.substr(end + 2, 1) == "T";
    }
    void pass_on(const signalfd_siginfo& signal) const noexcept {
        const auto number = static_cast<int>(signal.ssi_signo);
        if (signal.ssi_code != SI_QUEUE) {
            ::kill(process_, number);
            return;
        }
        sigval value{};
        value.sival_ptr = reinterpret_cast<void*>(signal.ssi_ptr);
        ::sigqueue(process_, number, value);
    }

    pid_t process_ = -1;
    bool has_ended_ = false;
    bool stopped_too_ = false;  // the next SIGCONT is for this process
    int code_ = 0;
    int signal_ = 0;
};

/// A ring holds 16,384 entries. At one call per microsecond, it is full after 16 ms.
constexpr int shortest_pause_ms = 1;
/// If one read returns this many entries, the next follows at once.
constexpr std::size_t many_entries = 8192;

constexpr int without_end = -1;

int next_pause(int pause, int longest, std::size_t entries) {
    if (entries >= many_entries) return 0;
    return entries != 0 ? shortest_pause_ms : std::clamp(pause * 2, shortest_pause_ms, longest);
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
        if (::poll(watched.data(), watched.size(), pause_ms) > 0) {
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
    if (file_.empty()) throw cannot_run(arguments.program.front(), ENOENT);
    const bool has_malloc =
        std::ranges::find(parts_, Part::malloc, &PlannedPart::part) != parts_.end();
    if (!arguments.interpose_min.empty() && !has_malloc) {
        throw CommandError(wrong_usage, "run: --interpose-min needs the part malloc");
    }
    check_budgets(arguments.budget);
}

Outcome Launch::run(Family::Looks looks, TraceOutput* recorder, const Report& report) const {
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
