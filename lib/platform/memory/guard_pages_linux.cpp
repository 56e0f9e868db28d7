
#include <sys/mman.h>
#include <unistd.h>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

// Of <asm-generic/mman-common.h> since Linux 6.13; this C library does not have them yet.
constexpr int advice_guard_install = 102;
constexpr int advice_guard_remove = 103;

// How pages got guards: by advice, and by mprotect where the kernel knows no such advice or the
// pages were locked. Relaxed: a thread that removes a guard has been told of it by the thread that
// installed it.
constinit std::atomic<bool> any_advised = false;
constinit std::atomic<bool> any_protected = false;

}  // namespace

bool install_guard(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    if (madvise(address, bytes, advice_guard_install) == 0) {
        any_advised.store(true, std::memory_order_relaxed);
        return true;
    }
    any_protected.store(true, std::memory_order_relaxed);
    return mprotect(address, bytes, PROT_NONE) == 0;
}

// Which of both ways protects these pages is not known, so both are undone.
bool remove_guard(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    const bool advised = madvise(address, bytes, advice_guard_remove) == 0;
    if (!advised && any_advised.load(std::memory_order_relaxed)) return false;
    if (!any_protected.load(std::memory_order_relaxed)) return advised;
    return mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
}

std::uint64_t random_bits() noexcept {
    const SystemCalls system_calls;
    std::uint64_t bits = 0;
    if (getentropy(&bits, sizeof bits) == 0) return bits;
    return monotonic_clock_ns() * 0x9E3779B97F4A7C15 ^ reinterpret_cast<std::uintptr_t>(&bits);
}

}  // namespace tensorpool::platform
