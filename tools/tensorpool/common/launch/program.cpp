#include "common/launch/launch.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "common/printable.hpp"

namespace tensorpool::command::launch {
namespace {

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

}  // namespace

Signals::Signals() {
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

Signals::~Signals() {
    take();
    restore();
}

std::vector<signalfd_siginfo> Signals::take() const {
    std::vector<signalfd_siginfo> came;
    signalfd_siginfo one{};
    while (::read(descriptor_.number(), &one, sizeof one) == static_cast<ssize_t>(sizeof one)) {
        came.push_back(one);
    }
    return came;
}

void Signals::restore() const noexcept {
    sigaction(SIGCHLD, &child_before_, nullptr);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

bool is_from_process(const signalfd_siginfo& signal) noexcept {
    return signal.ssi_code == SI_USER || signal.ssi_code == SI_QUEUE || signal.ssi_code == SI_TKILL;
}

bool is_systems_to_us(const signalfd_siginfo& signal) noexcept {
    if (signal.ssi_code != SI_KERNEL) return false;
    const bool is_hangup = signal.ssi_signo == SIGHUP || signal.ssi_signo == SIGCONT;
    return is_hangup ? ::getsid(0) == ::getpid() : signal.ssi_signo == SIGALRM;
}

void leave_no_core() noexcept {
    const rlimit none{};
    setrlimit(RLIMIT_CORE, &none);
}

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

CommandError no_such_program_error(const std::string& word) {
    return cannot_run(word, ENOENT);
}

Program::Program(const std::vector<std::string>& command, std::vector<std::string> environment,
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
        throw CommandError(run_failed,
                           fmt::format("run: cannot create a process: {}", std::strerror(errno)));
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

void Program::take(const signalfd_siginfo& signal) {
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

void Program::look() {
    for (;;) {
        siginfo_t info{};
        const int wanted = WEXITED | WSTOPPED | WNOHANG;
        if (::waitid(P_PID, static_cast<id_t>(process_), &info, wanted) != 0 || info.si_pid == 0) {
            return;
        }
        if (info.si_code == CLD_STOPPED) {
            // Stops as well, so that the shell notices. A process stopped by SIGSTOP alone is also
            // continued alone.
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
bool Program::is_stopped() const {
    std::ifstream file("/proc/" + std::to_string(process_) + "/stat");
    std::string line;
    std::getline(file, line, '\0');
    const std::size_t end = line.rfind(") ");
    return end != std::string::npos && line.substr(end + 2, 1) == "T";
}

void Program::pass_on(const signalfd_siginfo& signal) const noexcept {
    const auto number = static_cast<int>(signal.ssi_signo);
    if (signal.ssi_code != SI_QUEUE) {
        ::kill(process_, number);
        return;
    }
    sigval value{};
    value.sival_ptr = reinterpret_cast<void*>(signal.ssi_ptr);
    ::sigqueue(process_, number, value);
}

}  // namespace tensorpool::command::launch
