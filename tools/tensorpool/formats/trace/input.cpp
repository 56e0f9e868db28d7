#include "formats/trace/input.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::trace {
namespace {

CommandError unreadable(const std::string& path, const char* why) {
    return {finding,
            fmt::format("{} cannot be read: {}; give a trace that `tensorpool record`, `tensorpool "
                        "run --trace` or TENSORPOOL_TRACE wrote",
                        printable(path), why)};
}

}  // namespace

// Without O_NONBLOCK, opening a named pipe would block until a writer opens it.
Input::Input(const std::string& path)
    : name_(path), file_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)) {
    struct stat status = {};
    if (!file_ || fstat(file_.number(), &status) != 0) {
        throw unreadable(path, std::strerror(errno));
    }
    if (!S_ISREG(status.st_mode)) throw unreadable(path, "not a regular file");
    bytes_ = static_cast<std::uint64_t>(status.st_size);
}

Input::Input(std::span<const std::byte> bytes, std::string name)
    : name_(std::move(name)), memory_(bytes), bytes_(bytes.size()) {}

std::size_t Input::read(std::uint64_t offset, std::span<std::byte> to) {
    if (offset >= bytes_) return 0;
    to = to.first(static_cast<std::size_t>(std::min<std::uint64_t>(to.size(), bytes_ - offset)));
    if (!file_) {
        if (!to.empty()) std::memcpy(to.data(), memory_.data() + offset, to.size());
        return to.size();
    }
    std::size_t done = 0;
    while (done < to.size()) {
        const ssize_t count = pread(file_.number(), to.data() + done, to.size() - done,
                                    static_cast<off_t>(offset + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw unreadable(name_, std::strerror(errno));
        if (count == 0) {
            bytes_ = offset + done;  // another process truncated the file
            break;
        }
        done += static_cast<std::size_t>(count);
    }
    return done;
}

}  // namespace tensorpool::command::trace
