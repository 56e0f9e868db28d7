#include "run/signals.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include "run/arguments.hpp"

namespace tensorpool::command::run {
namespace {

sigset_t taken_signals() noexcept {
    sigset_t signals;
    sigfillset(&signals);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
        sigdelset(&signals, fault);
    }
    return signals;
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

}  // namespace tensorpool::command::run
