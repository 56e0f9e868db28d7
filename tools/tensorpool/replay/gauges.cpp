#include "replay/gauges.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace tensorpool::command::replay {
namespace {

std::uint64_t nanoseconds(const timeval& time) noexcept {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_usec) * 1'000;
}

/// Reads the lines of a file without allocating a buffer in the C library.
class Lines {
public:
    explicit Lines(const char* path) noexcept : file_(open(path, O_RDONLY | O_CLOEXEC)) {}
    ~Lines() {
        if (file_ >= 0) close(file_);
    }
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    /// Returns the next line, or nullptr at the end and for a line that is too long.
    const char* next() noexcept {
        for (;;) {
            char* const begin = text_ + at_;
            char* const end = static_cast<char*>(std::memchr(begin, '\n', filled_ - at_));
            if (end != nullptr) {
                *end = '\0';
                at_ = static_cast<std::size_t>(end + 1 - text_);
                return begin;
            }
            if (!read_more()) return nullptr;
        }
    }

private:
    bool read_more() noexcept {
        std::memmove(text_, text_ + at_, filled_ - at_);
        filled_ -= std::exchange(at_, 0);
        const ssize_t count = read(file_, text_ + filled_, sizeof text_ - filled_);
        if (count <= 0) return false;
        filled_ += static_cast<std::size_t>(count);
        return true;
    }

    int file_;
    std::size_t at_ = 0;
    std::size_t filled_ = 0;
    char text_[8192];
};

/// Returns a value of /proc/self/status, converted from KiB to bytes; 0 if it is missing.
std::uint64_t status_value(const char* name) noexcept {
    Lines lines("/proc/self/status");
    const std::size_t length = std::strlen(name);
    while (const char* const line = lines.next()) {
        if (std::strncmp(line, name, length) == 0) {
            return std::strtoull(line + length, nullptr, 10) * 1024;
        }
    }
    return 0;
}

}  // namespace

Spent spent_so_far() noexcept {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return {static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                static_cast<std::uint64_t>(now.tv_nsec),
            nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime),
            static_cast<std::uint64_t>(usage.ru_minflt),
            static_cast<std::uint64_t>(usage.ru_majflt)};
}

bool reset_peak() noexcept {
    const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
    if (file < 0) return false;
    const bool done = write(file, "5", 1) == 1;
    close(file);
    return done;
}

std::uint64_t resident_bytes() noexcept {
    return status_value("VmRSS:");
}

std::uint64_t peak_bytes() noexcept {
    return status_value("VmHWM:");
}

void file_of(const void* address, std::span<char> name) noexcept {
    name[0] = '\0';
    const auto wanted = reinterpret_cast<std::uintptr_t>(address);
    Lines lines("/proc/self/maps");
    while (const char* const line = lines.next()) {
        char* after = nullptr;
        const std::uintptr_t begin = std::strtoull(line, &after, 16);
        const std::uintptr_t end = std::strtoull(after + 1, nullptr, 16);
        if (wanted < begin || wanted >= end) continue;
        const char* const slash = std::strrchr(line, '/');
        if (slash == nullptr) return;
        const std::size_t length = std::min(std::strlen(slash + 1), name.size() - 1);
        std::memcpy(name.data(), slash + 1, length);
        name[length] = '\0';
        return;
    }
}

}  // namespace tensorpool::command::replay
