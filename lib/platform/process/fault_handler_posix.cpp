#include "platform/platform.hpp"

#include <csignal>
#include <mutex>

#ifdef __x86_64__
#include <ucontext.h>
#endif

namespace tensorpool::platform {
namespace {

constexpr int signals[] = {SIGSEGV, SIGBUS};

constinit FaultFunction report = nullptr;
// In the order of `signals`. Written before the handlers are installed.
struct sigaction former[2];
constinit std::mutex install_mutex;

const struct sigaction& former_of(int signal) noexcept {
    return former[signal == signals[0] ? 0 : 1];
}

FaultAccess access_of(const void* context) noexcept {
#ifdef __x86_64__
    // Bit 1 of the page fault's error code: Intel's manual, volume 3, "Page-fault exception".
    constexpr long long is_write = 2;
    const auto& machine = static_cast<const ucontext_t*>(context)->uc_mcontext;
    return (machine.gregs[REG_ERR] & is_write) != 0 ? FaultAccess::write : FaultAccess::read;
#else
    static_cast<void>(context);
    return FaultAccess::unknown;
#endif
}

// The kernel's own signals have a positive code.
bool is_sent(const siginfo_t& info) noexcept {
    return info.si_code <= 0;
}

// The faulting instruction runs again after the handler and then has the default effect. A signal
// that was sent is sent again.
void use_default(int signal, bool sent) noexcept {
    struct sigaction action {};
    action.sa_handler = SIG_DFL;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
    if (sent) raise(signal);
}

void pass_on(int signal, siginfo_t* info, void* context) noexcept {
    const struct sigaction& action = former_of(signal);
    const bool sent = is_sent(*info);
    const bool has_info = (action.sa_flags & SA_SIGINFO) != 0;
    if (!has_info && action.sa_handler == SIG_IGN && sent) return;
    if (!has_info && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
        return use_default(signal, sent);
    }
    sigset_t blocked = action.sa_mask;
    sigset_t before;
    if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, signal);
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    if (has_info) {
        action.sa_sigaction(signal, info, context);
    } else {
        action.sa_handler(signal);
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void handle(int signal, siginfo_t* info, void* context) noexcept {
    if (!is_sent(*info)) report(info->si_addr, access_of(context));
    pass_on(signal, info, context);
}

bool install(int signal) noexcept {
    struct sigaction& before = former[signal == signals[0] ? 0 : 1];
    if (sigaction(signal, nullptr, &before) != 0) return false;
    struct sigaction action {};
    action.sa_sigaction = handle;
    // SA_NODEFER: a handler that it passes the fault to may leave with longjmp.
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    return sigaction(signal, &action, nullptr) == 0;
}

}  // namespace

bool handle_faults(FaultFunction function) noexcept {
    const std::lock_guard guard(install_mutex);
    if (report != nullptr) return true;
    report = function;
    for (const int signal : signals) {
        if (!install(signal)) return false;
    }
    return true;
}

}  // namespace tensorpool::platform
