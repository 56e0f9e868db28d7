#include <sys/mman.h>

#include "platform/files/file_pages.hpp"
#include "platform/files/input_file.hpp"
#include "platform/files/system_files_linux.hpp"
#include "platform/memory/memory_limits_linux.hpp"

namespace tensorpool::platform {
namespace {

// From the kernel's mman-common.h. The system's headers may be older than the running kernel.
constexpr int advice_populate_read = 22;

/// Returns whether the kernel (5.14 and later) supports the advice. For a range of no bytes it
/// rejects only unknown advice.
bool knows_populate_read(void* address) noexcept {
    return madvise(address, 0, advice_populate_read) == 0;
}

Outcome advise(void* address, std::size_t bytes, int advice) noexcept {
    const SystemCalls system_calls;
    return madvise(address, bytes, advice) == 0 ? Outcome::done : Outcome::refused;
}

int advice_for(ReadAhead how_much) noexcept {
    if (how_much == ReadAhead::much) return MADV_SEQUENTIAL;
    return how_much == ReadAhead::none ? MADV_RANDOM : MADV_NORMAL;
}

std::size_t size_of(rlim_t limit) noexcept {
    return limit == RLIM_INFINITY ? SIZE_MAX : static_cast<std::size_t>(limit);
}

bool is_beyond_limit(std::size_t bytes) noexcept {
    const std::size_t soft = lock_limits().soft;
    return soft != SIZE_MAX && bytes > soft - std::min(soft, locked_memory());
}

/// Finds the reason of a failed mlock, which has one error number for several reasons (mlock(2)).
LockRefusal reason_of(int error, void* address, std::size_t bytes) noexcept {
    if (error == EPERM) return LockRefusal::limit;
    if (error == EAGAIN) return LockRefusal::memory;
    if (error != ENOMEM) return LockRefusal::other;
    if (populate_for_reading(address, bytes) == Outcome::refused) return LockRefusal::pages;
    return is_beyond_limit(bytes) ? LockRefusal::limit : LockRefusal::other;
}

}  // namespace

Outcome populate_for_reading(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    if (madvise(address, bytes, advice_populate_read) == 0) return Outcome::done;
    return knows_populate_read(address) ? Outcome::refused : Outcome::unsupported;
}

std::size_t resident_file_bytes(const void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    auto* const begin = static_cast<char*>(const_cast<void*>(address));
    unsigned char answers[1024];  // the lowest bit is the answer
    const std::size_t most = sizeof answers * page_bytes();
    std::size_t pages = 0;
    for (std::size_t at = 0; at < bytes; at += most) {
        const std::size_t some = std::min(most, bytes - at);
        if (mincore(begin + at, some, answers) != 0) return 0;
        pages += static_cast<std::size_t>(
            std::count_if(answers, answers + some / page_bytes(),
                          [](unsigned char answer) { return (answer & 1U) != 0; }));
    }
    return pages * page_bytes();
}

bool InputFile::drop_from_cache(std::uint64_t offset, std::uint64_t bytes) const noexcept {
    return posix_fadvise(static_cast<int>(handle_), static_cast<off_t>(offset),
                         static_cast<off_t>(bytes), POSIX_FADV_DONTNEED) == 0;
}

std::size_t locked_memory() noexcept {
    const SystemCalls system_calls;
    LineReader lines("/proc/self/status");
    for (std::string_view line; lines.next(line);) {
        if (take_field(line, ':') != "VmLck") continue;
        line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
        return parse_number(line).value_or(0) * 1024;
    }
    return 0;
}

MemoryRoom memory_room() noexcept {
    const SystemCalls system_calls;
    const MemoryLimits limits = read_memory_limits("");
    if (limits.binding != no_limit) return {limits.available, limits.binding, true};
    return {limits.available, total_memory(), false};
}

Outcome set_read_ahead(void* address, std::size_t bytes, ReadAhead how_much) noexcept {
    return advise(address, bytes, advice_for(how_much));
}

Outcome begin_to_read(void* address, std::size_t bytes) noexcept {
    return advise(address, bytes, MADV_WILLNEED);
}

Outcome drop_file_pages(void* address, std::size_t bytes) noexcept {
    return advise(address, bytes, MADV_DONTNEED);
}

bool bar_file_pages(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    // One call, so that no mapping of another thread can take these addresses in between.
    return mmap(address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANON | MAP_NORESERVE | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

void unmap_file(void* address, std::size_t bytes) noexcept {
    release(address, bytes);
}

LockRefusal lock_pages(void* address, std::size_t bytes, int& error) noexcept {
    const SystemCalls system_calls;
    if (mlock(address, bytes) == 0) return LockRefusal::none;
    error = errno;
    const LockRefusal reason = reason_of(error, address, bytes);
    // Some of the pages may have been locked.
    munlock(address, bytes);
    return reason;
}

void unlock_pages(void* address, std::size_t bytes) noexcept {
    const SystemCalls system_calls;
    munlock(address, bytes);
}

LockLimits lock_limits() noexcept {
    const SystemCalls system_calls;
    rlimit limit{};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return {};
    return {size_of(limit.rlim_cur), size_of(limit.rlim_max)};
}

const char* lock_limit_name() noexcept {
    return "RLIMIT_MEMLOCK";
}

std::string how_to_raise_lock_limit(std::size_t needed, bool beyond_hard_limit) {
    const std::string bytes = std::to_string(needed);
    const std::string kib = std::to_string(base::ceil_divide(needed, 1024));
    const std::string shell =
        beyond_hard_limit
            ? "a line `USER - memlock " + kib + "` in /etc/security/limits.conf and a new login"
            : "`ulimit -l " + kib + "` in the shell that starts the program";
    return shell + ", LimitMEMLOCK=" + bytes +
           " in its systemd unit, or --ulimit memlock=" + bytes + ':' + bytes +
           " for its container";
}

}  // namespace tensorpool::platform
