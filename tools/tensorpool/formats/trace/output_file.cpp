#include "formats/trace/output_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::trace {
namespace {

/// Blocks the signal of a write beyond the file size limit, which would end the program.
class NoSizeSignal {
public:
    NoSizeSignal() noexcept {
        sigemptyset(&signals_);
        sigaddset(&signals_, SIGXFSZ);
        pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    }
    ~NoSizeSignal() {
        const timespec now{};
        if (sigismember(&before_, SIGXFSZ) == 0) sigtimedwait(&signals_, nullptr, &now);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoSizeSignal(const NoSizeSignal&) = delete;
    NoSizeSignal& operator=(const NoSizeSignal&) = delete;

private:
    sigset_t signals_{};
    sigset_t before_{};
};

CommandError unwritable(const std::string& path, const std::string& why) {
    return {finding, fmt::format("{} cannot be written: {}; give another file with -o",
                                 printable(path), why)};
}

/// Prepares the file: locks it, sets its mode and empties it. Returns "", or why it must not be
/// replaced.
std::string prepare(int file) {
    struct stat status = {};
    if (fstat(file, &status) != 0) return std::strerror(errno);
    if (!S_ISREG(status.st_mode)) return {};
    if (flock(file, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
        return "another process is recording into it";
    }
    if (fchmod(file, 0600) != 0 || ftruncate(file, 0) != 0) return std::strerror(errno);
    return {};
}

}  // namespace

OutputFile::OutputFile(const std::string& path)
    : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600)) {
    if (file_ < 0) throw unwritable(path, std::strerror(errno));
    const std::string why = prepare(file_);
    if (why.empty()) return;
    close(file_);
    throw unwritable(path, why);
}

OutputFile::~OutputFile() {
    close(file_);
}

bool OutputFile::write_all(std::span<const std::byte> part) {
    while (!part.empty()) {
        const ssize_t count = write(file_, part.data(), part.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        part = part.subspan(static_cast<std::size_t>(count));
    }
    return true;
}

void OutputFile::append(Piece piece) {
    if (!problem_.empty()) return;
    const NoSizeSignal guard;
    std::uint64_t bytes = 0;
    for (const auto part : piece) {
        if (!write_all(part)) {
            problem_ = std::strerror(errno);
            // If this fails too, an incomplete piece remains at the end.
            (void)!ftruncate(file_, static_cast<off_t>(bytes_));
            return;
        }
        bytes += part.size();
    }
    bytes_ += bytes;
}

}  // namespace tensorpool::command::trace
