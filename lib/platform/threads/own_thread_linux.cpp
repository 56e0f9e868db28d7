#include <linux/futex.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "platform/system_calls.hpp"
#include "platform/threads/own_thread.hpp"

namespace tensorpool::platform {
namespace {

constexpr int lowest_priority = 19;  // of nice(2); with SCHED_IDLE the thread might never run to
                                     // release a lock

void* run_own_thread(void* run) {
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    reinterpret_cast<void (*)()>(run)();
    return nullptr;
}

void* run_at_lowest_priority(void* run) {
    setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), lowest_priority);
    return run_own_thread(run);
}

long futex(const std::atomic<std::uint32_t>& word, int operation, std::uint32_t value,
           const timespec* timeout) noexcept {
    return syscall(SYS_futex, &word, operation, value, timeout, nullptr, 0);
}

}  // namespace

OwnThread start_own_thread(const char* name, void (*run)(), Priority priority) noexcept {
    const SystemCalls system_calls;
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0) return {};
    pthread_t thread{};
    const auto begin = priority == Priority::lowest ? run_at_lowest_priority : run_own_thread;
    const bool started = pthread_create(&thread, nullptr, begin, reinterpret_cast<void*>(run)) == 0;
    if (started) pthread_setname_np(thread, name);
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return started ? OwnThread{static_cast<std::uintptr_t>(thread)} : OwnThread{};
}

void join_own_thread(OwnThread thread) noexcept {
    const SystemCalls system_calls;
    pthread_join(static_cast<pthread_t>(thread.handle), nullptr);
}

void detach_own_thread(OwnThread thread) noexcept {
    const SystemCalls system_calls;
    pthread_detach(static_cast<pthread_t>(thread.handle));
}

void wait_on(const std::atomic<std::uint32_t>& word, std::uint32_t seen,
             std::uint64_t timeout_ns) noexcept {
    const SystemCalls system_calls;
    constexpr std::uint64_t second = 1'000'000'000;
    const timespec timeout{static_cast<time_t>(timeout_ns / second),
                           static_cast<long>(timeout_ns % second)};
    futex(word, FUTEX_WAIT, seen, timeout_ns == no_timeout ? nullptr : &timeout);
}

void wake_waiter(std::atomic<std::uint32_t>& word) noexcept {
    const SystemCalls system_calls;
    // The kernel compares the word, so a waiter that comes later does not sleep.
    word.fetch_add(1, std::memory_order_release);
    futex(word, FUTEX_WAKE, 1, nullptr);
}

}  // namespace tensorpool::platform
