#include "formats/symbols/code_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace tensorpool::command::symbols {

void CodeFile::open(const std::string& path) {
    if (!path.starts_with('/')) {
        problem_ = "is not an absolute path";
        return;
    }
    // The type is checked first, because opening a device may have effects.
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) {
        problem_ = std::strerror(errno);
        return;
    }
    if (!S_ISREG(about.st_mode)) {
        problem_ = "is not a regular file";
        return;
    }
    // If the file was replaced since, opening it must neither block nor set the controlling
    // terminal.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0 || ::fstat(file, &about) != 0) {
        problem_ = std::strerror(errno);
    } else {
        changed_unix_ns_ = static_cast<std::uint64_t>(about.st_mtim.tv_sec) * 1'000'000'000 +
                           static_cast<std::uint64_t>(about.st_mtim.tv_nsec);
        open_symbols(path, file);
    }
    if (file >= 0) ::close(file);
}

}  // namespace tensorpool::command::symbols
