#include "platform/files/spill_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "platform/files/high_descriptor_linux.hpp"
#include "platform/files/no_size_signal_posix.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

/// Returns the system's message for errno behind what was tried.
FileProblem problem_with(const char* what) noexcept {
    FileProblem problem;
    char buffer[96] = {};
    const char* const message = strerror_r(errno, buffer, sizeof buffer);
    std::snprintf(problem.text, sizeof problem.text, "%s: %s", what, message);
    return problem;
}

FileProblem plain(const char* what) noexcept {
    FileProblem problem;
    std::snprintf(problem.text, sizeof problem.text, "%s", what);
    return problem;
}

bool lies_in_memory(int file) noexcept {
    struct statfs found = {};
    if (fstatfs(file, &found) != 0) return false;
    return found.f_type == TMPFS_MAGIC || found.f_type == RAMFS_MAGIC;
}

bool free_range(int file, std::uint64_t position, std::uint64_t bytes) noexcept {
    return fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(position),
                     static_cast<off_t>(bytes)) == 0;
}

}  // namespace

SpillFile::~SpillFile() {
    const SystemCalls system_calls;
    if (file_ >= 0) ::close(file_);
}

FileProblem SpillFile::open(const char* folder) noexcept {
    const SystemCalls system_calls;
    const int file = ::open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) return problem_with("no unnamed file can be created there (O_TMPFILE)");
    FileProblem problem;
    if (lies_in_memory(file)) {
        problem = plain("found a file system in memory (tmpfs or ramfs), expected one on a disk");
    } else if (!free_range(file, 0, 4096)) {
        problem = problem_with("its file system cannot free parts of a file (fallocate)");
    }
    if (problem) {
        ::close(file);
    } else {
        file_ = move_high(file);
    }
    return problem;
}

FileProblem SpillFile::write(std::uint64_t position, std::span<const std::byte> bytes) noexcept {
    const SystemCalls system_calls;
    const NoSizeSignal no_size_signal;
    std::span<const std::byte> left = bytes;
    while (!left.empty()) {
        const off_t at = static_cast<off_t>(position + bytes.size() - left.size());
        const ssize_t written = pwrite(file_, left.data(), left.size(), at);
        if (written < 0 && errno == EINTR) continue;
        if (written == 0) errno = ENOSPC;
        if (written <= 0) return problem_with("write");
        left = left.subspan(static_cast<std::size_t>(written));
    }
    // So that the disk works while the next bytes are made. `settle` reports what fails.
    (void)sync_file_range(file_, static_cast<off_t>(position), static_cast<off_t>(bytes.size()),
                          SYNC_FILE_RANGE_WRITE);
    return {};
}

FileProblem SpillFile::settle(std::uint64_t position, std::uint64_t bytes) noexcept {
    const SystemCalls system_calls;
    const auto at = static_cast<off_t>(position);
    const auto length = static_cast<off_t>(bytes);
    constexpr unsigned all_of_it =
        SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
    if (sync_file_range(file_, at, length, all_of_it) != 0) {
        // ENOSYS, EINVAL, ESPIPE: some file systems know fdatasync only.
        if (errno == EIO || errno == ENOSPC || errno == EDQUOT || fdatasync(file_) != 0)
            return problem_with("write to the disk");
    }
    (void)posix_fadvise(file_, at, length, POSIX_FADV_DONTNEED);
    return {};
}

FileProblem SpillFile::read(std::uint64_t position, std::span<std::byte> bytes) const noexcept {
    const SystemCalls system_calls;
    std::size_t done = 0;
    while (done < bytes.size()) {
        const ssize_t got = pread(file_, bytes.data() + done, bytes.size() - done,
                                  static_cast<off_t>(position + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return problem_with("read");
        if (got == 0) {
            FileProblem problem;
            std::snprintf(problem.text, sizeof problem.text,
                          "found the end of the file after %zu bytes, expected %zu", done,
                          bytes.size());
            return problem;
        }
        done += static_cast<std::size_t>(got);
    }
    return {};
}

void SpillFile::read_ahead(std::uint64_t position, std::uint64_t bytes) const noexcept {
    const SystemCalls system_calls;
    (void)posix_fadvise(file_, static_cast<off_t>(position), static_cast<off_t>(bytes),
                        POSIX_FADV_WILLNEED);
}

bool SpillFile::free(std::uint64_t position, std::uint64_t bytes) noexcept {
    const SystemCalls system_calls;
    return free_range(file_, position, bytes);
}

}  // namespace tensorpool::platform
