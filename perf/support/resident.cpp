#include "support/resident.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace perf {
namespace {

/// Reads the file in pieces and calls `use(text, length)` for each.
template <class Use>
void read_file(const char* path, Use use) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) std::abort();
    char text[4096];
    for (ssize_t length; (length = read(file, text, sizeof(text) - 1)) > 0;) {
        text[length] = '\0';
        use(text, static_cast<std::size_t>(length));
    }
    close(file);
}

/// Returns in bytes the number of KiB that follows `name` in the file's first piece; 0 if `name` is
/// not there.
std::size_t bytes_after(const char* name, const char* path) {
    std::size_t bytes = 0;
    read_file(path, [&](const char* text, std::size_t) {
        const char* const found = std::strstr(text, name);
        if (found != nullptr) bytes = std::strtoul(found + std::strlen(name), nullptr, 10) * 1024;
    });
    return bytes;
}

}  // namespace

std::size_t resident_bytes() {
    constexpr const char* pages = "/proc/self/smaps_rollup";
    return bytes_after("\nAnonymous:", pages) + bytes_after("\nPss_Shmem:", pages);
}

std::size_t peak_resident_bytes() {
    return bytes_after("\nVmHWM:", "/proc/self/status");
}

std::size_t mapping_count() {
    std::size_t lines = 0;
    read_file("/proc/self/maps", [&](const char* text, std::size_t length) {
        lines += static_cast<std::size_t>(std::count(text, text + length, '\n'));
    });
    return lines;
}

}  // namespace perf
