// What Linux and macOS share.

#include <poll.h>
#include <pthread.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "base/alignment.hpp"
#include "platform/errno_keeper.hpp"
#include "platform/files/no_size_signal_posix.hpp"
#include "platform/platform.hpp"

namespace tensorpool::platform {
namespace {

int protection_of(Access access) noexcept {
    return access == Access::read_zeros ? PROT_READ : PROT_NONE;
}

/// Ends what lies in [begin, end); nothing for an empty range.
void release_range(char* begin, char* end) noexcept {
    if (begin != end) munmap(begin, static_cast<std::size_t>(end - begin));
}

/// Cuts [begin, begin + bytes) down to an aligned range of `wanted` bytes, which it returns.
void* trim_to_aligned(char* begin, std::size_t bytes, std::size_t wanted,
                      std::size_t alignment) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(begin);
    char* const aligned = begin + (base::align_up(address, alignment) - address);
    release_range(begin, aligned);
    release_range(aligned + wanted, begin + bytes);
    return aligned;
}

/// Whether a write that failed may be tried again. Standard error does not wait where another
/// process made the terminal or the pipe that it shares with us so; then we wait.
bool may_write_again() noexcept {
    if (errno == EINTR) return true;
    if (errno != EAGAIN) return false;
    pollfd stream{STDERR_FILENO, POLLOUT, 0};
    return poll(&stream, 1, -1) >= 0 || errno == EINTR;
}

/// One of the functions that are called when threads end. Nothing here is locked: a child of a fork
/// would keep what another thread had locked.
struct ExitSlot {
    std::atomic<bool> taken{false};
    pthread_key_t key{};
    // Stored with release after `key` is made, loaded with acquire before that is used.
    std::atomic<void (*)()> function{nullptr};
};
constinit std::array<ExitSlot, most_exit_handlers> exit_slots{};

ExitSlot* added_slot(ExitHandler handler) noexcept {
    if (handler < 0 || handler >= most_exit_handlers) return nullptr;
    ExitSlot& slot = exit_slots[static_cast<std::size_t>(handler)];
    return slot.function.load(std::memory_order_acquire) == nullptr ? nullptr : &slot;
}

/// What a thread's key holds is the slot.
void run_exit_handler(void* slot) noexcept {
    static_cast<ExitSlot*>(slot)->function.load(std::memory_order_acquire)();
}

}  // namespace

// Pages and address space ------------------------------------------------------------------------

std::size_t page_bytes() noexcept {
    return static_cast<std::size_t>(getpagesize());
}

void* reserve(std::size_t bytes, std::size_t alignment, Access access) noexcept {
    const ErrnoKeeper errno_keeper;
    // The system aligns to pages; any more is gained by asking for more and cutting both ends.
    const std::size_t asked = bytes + (alignment - page_bytes());
    if (bytes == 0 || asked < bytes) return nullptr;
    // Not writable, so not counted even where the system never overcommits; elsewhere
    // MAP_NORESERVE keeps it uncounted once it is committed: what counts is what is touched.
    void* const begin = mmap(nullptr, asked, protection_of(access),
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return nullptr;
    return trim_to_aligned(static_cast<char*>(begin), asked, bytes, alignment);
}

void release(void* address, std::size_t bytes) noexcept {
    const ErrnoKeeper errno_keeper;
    munmap(address, bytes);
}

bool commit(void* address, std::size_t bytes) noexcept {
    const ErrnoKeeper errno_keeper;
    return mprotect(address, bytes, PROT_READ | PROT_WRITE) == 0;
}

void* map(std::size_t bytes, std::size_t alignment) noexcept {
    void* const address = reserve(bytes, alignment, Access::none);
    if (address == nullptr) return nullptr;
    if (commit(address, bytes)) return address;
    release(address, bytes);
    return nullptr;
}

void unmap(void* address, std::size_t bytes) noexcept {
    release(address, bytes);
}

// Threads and processes --------------------------------------------------------------------------

ExitHandler add_thread_exit_handler(void (*function)()) noexcept {
    const ErrnoKeeper errno_keeper;
    for (ExitHandler handler = 0; handler < most_exit_handlers; ++handler) {
        ExitSlot& slot = exit_slots[static_cast<std::size_t>(handler)];
        // Acquire: after the release of one who took it and failed.
        if (slot.taken.exchange(true, std::memory_order_acquire)) continue;
        if (pthread_key_create(&slot.key, run_exit_handler) != 0) {
            slot.taken.store(false, std::memory_order_release);
            return no_exit_handler;
        }
        slot.function.store(function, std::memory_order_release);
        return handler;
    }
    return no_exit_handler;
}

bool call_at_thread_exit(ExitHandler handler) noexcept {
    const ErrnoKeeper errno_keeper;
    ExitSlot* const slot = added_slot(handler);
    // Any value but null has the destructor called; it is set back to null before that, so setting
    // it again from within asks for another round (PTHREAD_DESTRUCTOR_ITERATIONS of them).
    return slot != nullptr && pthread_setspecific(slot->key, slot) == 0;
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

const char* environment_variable(const char* name) noexcept {
    return std::getenv(name);
}

void write_to_stderr(const char* text, std::size_t bytes) noexcept {
    const ErrnoKeeper errno_keeper;
    const NoSizeSignal no_size_signal;
    while (bytes > 0) {
        const ssize_t written = write(STDERR_FILENO, text, bytes);
        if (written < 0 && may_write_again()) continue;
        if (written <= 0) return;
        text += written;
        bytes -= static_cast<std::size_t>(written);
    }
}

void abort_process() noexcept {
    std::abort();
}

}  // namespace tensorpool::platform
