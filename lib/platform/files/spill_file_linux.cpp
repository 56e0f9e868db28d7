#include "platform/files/spill_file.hpp"

#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>

#include <array>
#include <cstdio>

#include "base/alignment.hpp"
#include "platform/files/no_size_signal_posix.hpp"
#include "platform/files/system_files_linux.hpp"

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

bool is_same_file(int one, int other) noexcept {
    struct stat first = {};
    struct stat second = {};
    return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

/// Returns another descriptor of the file, whose reads and writes bypass the page cache (O_DIRECT).
/// Returns -1 if the file system or the disk refuses that, or if there is no /proc.
int open_direct(int file) noexcept {
    char path[64];
    std::snprintf(path, sizeof path, "/proc/thread-self/fd/%d", file);
    const int direct = ::open(path, O_RDWR | O_CLOEXEC | O_DIRECT);
    if (direct < 0) return -1;
    alignas(SpillFile::unit) static constexpr std::array<std::byte, SpillFile::unit> zeros = {};
    if (is_same_file(file, direct) &&
        pwrite(direct, zeros.data(), zeros.size(), 0) == std::ssize(zeros))
        return move_high(direct);
    ::close(direct);
    return -1;
}

/// The memory of one call. What bypasses the page cache must have addresses and sizes of whole
/// units, so the bytes after the last whole unit are staged. No other thread may write to these
/// pages during the call: if the process forked then, the bytes that are read could end up in the
/// child only (NOTES of open(2)).
class Parts {
public:
    Parts(std::byte* bytes, std::size_t size, bool is_direct) noexcept {
        const std::size_t whole = is_direct ? base::align_down(size, SpillFile::unit) : size;
        rest_ = bytes + whole;
        rest_bytes_ = size - whole;
        parts_ = {iovec{bytes, whole},
                  iovec{staged_.data(), base::align_up(rest_bytes_, SpillFile::unit)}};
    }

    const iovec* data() const noexcept { return parts_.data(); }
    int count() const noexcept { return static_cast<int>(parts_.size()); }

    /// Copies the rest to where it is staged, before a write.
    void stage() noexcept {
        std::memset(staged_.data(), 0, parts_[1].iov_len);
        if (rest_bytes_ != 0) std::memcpy(staged_.data(), rest_, rest_bytes_);
    }
    /// Copies the rest to its place, after a read of `bytes` bytes. Returns how many of them were
    /// wanted.
    std::size_t take(std::size_t bytes) noexcept {
        const std::size_t whole = parts_[0].iov_len;
        if (bytes <= whole) return bytes;
        const std::size_t rest = std::min(bytes - whole, rest_bytes_);
        std::memcpy(rest_, staged_.data(), rest);
        return whole + rest;
    }

private:
    alignas(SpillFile::unit) std::array<std::byte, SpillFile::unit> staged_;
    std::array<iovec, 2> parts_;
    std::byte* rest_;
    std::size_t rest_bytes_;
};

}  // namespace

SpillFile::~SpillFile() {
    const SystemCalls system_calls;
    if (direct_ >= 0) ::close(direct_);
    if (file_ >= 0) ::close(file_);
}

FileProblem SpillFile::open(const char* folder) noexcept {
    const SystemCalls system_calls;
    const NoSizeSignal no_size_signal;
    const int file = ::open(folder, O_TMPFILE | O_EXCL | O_RDWR | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (file < 0) return problem_with("no unnamed file can be created there (O_TMPFILE)");
    file_ = move_high(file);
    if (lies_in_memory(file_))
        return plain("found a file system in memory (tmpfs or ramfs), expected one on a disk");
    direct_ = open_direct(file_);
    if (!free_range(file_, 0, unit))
        return problem_with("its file system cannot free parts of a file (fallocate)");
    return {};
}

FileProblem SpillFile::write(std::uint64_t position, std::span<const std::byte> bytes) noexcept {
    const SystemCalls system_calls;
    const NoSizeSignal no_size_signal;
    bool is_direct = direct_ >= 0 && base::is_aligned(bytes.data(), unit);
    std::span<const std::byte> left = bytes;
    while (!left.empty()) {
        const off_t at = static_cast<off_t>(position + bytes.size() - left.size());
        Parts parts(const_cast<std::byte*>(left.data()), left.size(), is_direct);
        parts.stage();
        const ssize_t written =
            pwritev(is_direct ? direct_ : file_, parts.data(), parts.count(), at);
        if (written < 0 && errno == EINTR) continue;
        if (written == 0) errno = ENOSPC;
        if (written <= 0 && !is_direct) return problem_with("write");
        const std::size_t done =
            std::min(left.size(), written <= 0 ? 0 : static_cast<std::size_t>(written));
        // The page cache also takes a part of a unit. If it does not, errno has the reason.
        if (done < left.size() && is_direct) is_direct = done != 0 && done % unit == 0;
        left = left.subspan(done);
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

FileProblem SpillFile::read(std::uint64_t position, std::span<std::byte> bytes,
                            ReadFrom from) const noexcept {
    const SystemCalls system_calls;
    bool is_direct = direct_ >= 0 && from == ReadFrom::disk && base::is_aligned(bytes.data(), unit);
    std::size_t done = 0;
    while (done < bytes.size()) {
        Parts parts(bytes.data() + done, bytes.size() - done, is_direct);
        const ssize_t got = preadv(is_direct ? direct_ : file_, parts.data(), parts.count(),
                                   static_cast<off_t>(position + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0 && !is_direct) return problem_with("read");
        if (got == 0) {
            FileProblem problem;
            std::snprintf(problem.text, sizeof problem.text,
                          "found the end of the file after %zu bytes, expected %zu", done,
                          bytes.size());
            return problem;
        }
        if (got > 0) done += parts.take(static_cast<std::size_t>(got));
        // If a direct read fails or ends within a unit, the rest is read through the page cache.
        if (got < 0 || done % unit != 0) is_direct = false;
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
