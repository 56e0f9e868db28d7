#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>
#include <string_view>

#include "platform/files/observed_file.hpp"

namespace tensorpool::platform {
namespace {

struct CloseFolder {
    void operator()(DIR* folder) const noexcept { ::closedir(folder); }
};

/// Parses the whole of a name as a number.
std::optional<std::uint64_t> number_of(std::string_view name) noexcept {
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
    return number;
}

std::string path_in(const std::string& folder, std::uint64_t number) {
    return folder + '/' + std::to_string(number);
}

}  // namespace

ObservedFile::ObservedFile(int descriptor) noexcept : file_(std::max(descriptor, -1)) {
    struct stat status {};
    if (!file_) return;
    if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
        file_ = {};
        return;
    }
    device_ = static_cast<std::uint64_t>(status.st_dev);
    inode_ = static_cast<std::uint64_t>(status.st_ino);
}

const void* ObservedFile::map(std::size_t bytes) const noexcept {
    void* const address = ::mmap(nullptr, bytes, PROT_READ, MAP_SHARED, descriptor(), 0);
    return address == MAP_FAILED ? nullptr : address;
}

// Uses /proc because the file may have no path.
ObservedFile ObservedFile::reopen_for_writing() const {
    const std::string path = "/proc/self/fd/" + std::to_string(descriptor());
    return ObservedFile(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOCTTY));
}

void* ObservedFile::map_for_writing(std::size_t bytes) const noexcept {
    void* const address =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor(), 0);
    return address == MAP_FAILED ? nullptr : address;
}

bool ObservedFile::hold_lock() const noexcept {
    return ::flock(descriptor(), LOCK_EX | LOCK_NB) == 0;
}

// Takes a shared lock for a moment. Readers do not block each other, and an exclusive lock of
// another process is detected.
ObservedFile::Lock ObservedFile::lock() const noexcept {
    if (::flock(descriptor(), LOCK_SH | LOCK_NB) == 0) {
        ::flock(descriptor(), LOCK_UN);
        return Lock::free;
    }
    return errno == EWOULDBLOCK ? Lock::held : Lock::unknown;
}

std::vector<std::uint64_t> numbers_in(const std::string& folder) {
    std::vector<std::uint64_t> numbers;
    const std::unique_ptr<DIR, CloseFolder> open(::opendir(folder.c_str()));
    if (open == nullptr) return numbers;
    while (const dirent* const entry = ::readdir(open.get())) {
        if (const auto number = number_of(entry->d_name)) numbers.push_back(*number);
    }
    std::sort(numbers.begin(), numbers.end());
    return numbers;
}

ObservedFile open_in(const std::string& folder, std::uint64_t number) {
    // Opening a pipe of this name must not block.
    constexpr int how = O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    return ObservedFile(::open(path_in(folder, number).c_str(), how));
}

bool remove_in(const std::string& folder, std::uint64_t number, const ObservedFile& file) {
    const std::string path = path_in(folder, number);
    struct stat status {};
    return ::lstat(path.c_str(), &status) == 0 &&
           static_cast<std::uint64_t>(status.st_dev) == file.device() &&
           static_cast<std::uint64_t>(status.st_ino) == file.inode() && ::unlink(path.c_str()) == 0;
}

}  // namespace tensorpool::platform
