// What POSIX has. The rest is in platform_linux.cpp.

#include <poll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "platform/files/no_size_signal_posix.hpp"
#include "platform/platform.hpp"
#include "platform/system_calls.hpp"
#include "platform/tools/memory_probes.hpp"

namespace tensorpool::platform {
namespace {

/// Unmaps [begin, end); does nothing for an empty range.
void release_range(char* begin, char* end) noexcept {
    if (begin != end) munmap(begin, static_cast<std::size_t>(end - begin));
}

/// Unmaps the ends of [begin, begin + bytes) around an aligned range of `wanted` bytes, which it
/// returns.
void* trim_to_aligned(char* begin, std::size_t bytes, std::size_t wanted,
                      std::size_t alignment) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    char* const aligned = begin + (base::align_up(address, alignment) - address);
    release_range(begin, aligned);
    release_range(aligned + wanted, begin + bytes);
    return aligned;
}

/// Returns whether a failed write may be repeated. Standard error is non-blocking if another
/// process that shares the terminal or pipe made it so; then this function waits.
bool may_write_again() noexcept {
    if (errno == EINTR) return true;
    if (errno != EAGAIN) return false;
    pollfd stream{STDERR_FILENO, POLLOUT, 0};
    return poll(&stream, 1, -1) >= 0 || errno == EINTR;
}

}  // namespace

// Pages and address space ------------------------------------------------------------------------

std::size_t page_bytes() noexcept {
    return static_cast<std::size_t>(getpagesize());
}

void* reserve(std::size_t bytes, std::size_t alignment) noexcept {
    const SystemCalls system_calls;
    // The system aligns to pages, which may be larger than the requested alignment (64 KiB on some
    // ARM and POWER servers). A larger alignment is reached by reserving more and cutting both
    // ends.
    const std::size_t unit = page_bytes();
    const std::size_t whole = base::align_up(bytes, unit);
    const std::size_t requested = whole + (std::max(alignment, unit) - unit);
    if (bytes == 0 || whole < bytes || requested < whole) return nullptr;
    // Memory that is not writable is not counted, even if the system never overcommits. Elsewhere
    // MAP_NORESERVE keeps it uncounted after it is committed: only touched pages count.
    void* const begin =
        mmap(nullptr, requested, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return nullptr;
    return trim_to_aligned(static_cast<char*>(begin), requested, whole, alignment);
}

// The system takes the address as a hint and follows it if nothing is mapped there.
ReservedAt reserve_at(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    void* const begin =
        mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return ReservedAt::refused;
    if (begin == address) return ReservedAt::done;
    munmap(begin, bytes);
    return ReservedAt::taken;
}

bool release(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    if (munmap(address, base::align_up(bytes, page_bytes())) != 0) return false;
    probe_unmapping(address, bytes);
    return true;
}

bool reserve_again(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED,
                -1, 0) != MAP_FAILED;
}

bool make_inaccessible(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return mprotect(address, bytes, PROT_NONE) == 0;
}

bool make_readable(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    return mprotect(address, bytes, PROT_READ) == 0;
}

bool commit(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) return false;
    probe_mapping(address, bytes);
    return true;
}

void* map(std::size_t bytes, std::size_t alignment) noexcept {
    void* const address = reserve(bytes, alignment);
    if (address == nullptr || commit(address, bytes)) return address;
    release(address, bytes);
    return nullptr;
}

void unmap(void* address, std::size_t bytes) noexcept {
    release(address, bytes);
}

// The rest ---------------------------------------------------------------------------------------

namespace {

std::uint64_t clock_ns(clockid_t clock) noexcept {
    timespec now{};
    clock_gettime(clock, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
           static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

std::uint64_t monotonic_clock_ns() noexcept {
    return clock_ns(CLOCK_MONOTONIC);
}

std::uint64_t wall_clock_ns() noexcept {
    return clock_ns(CLOCK_REALTIME);
}

std::uint64_t thread_time_ns() noexcept {
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

const char* environment_variable(const char* name) noexcept {
    return secure_getenv(name);
}

void write_to_stderr(const char* text, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    const NoSizeSignal no_size_signal;
    while (bytes > 0) {
        const ssize_t written = write(STDERR_FILENO, text, bytes);
        if (written < 0 && may_write_again()) continue;
        if (written <= 0) return;
        text += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

}  // namespace tensorpool::platform
