#include "platform/files/input_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "platform/platform.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

int descriptor(InputFile::Handle handle) noexcept {
    return static_cast<int>(handle);
}

std::error_code last_error() noexcept {
    return {errno, std::system_category()};
}

FileKind kind_of(mode_t mode) noexcept {
    if (S_ISREG(mode)) return FileKind::regular;
    if (S_ISDIR(mode)) return FileKind::folder;
    if (S_ISFIFO(mode)) return FileKind::pipe;
    return S_ISCHR(mode) || S_ISBLK(mode) ? FileKind::device : FileKind::other;
}

/// Reserves an address at which `bytes` can be mapped without replacing another mapping. Its
/// distance from the beginning of a huge page equals that of `offset`. Returns nullptr on failure.
/// Both arguments are as for `map`.
void* find_place(std::uint64_t offset, std::size_t bytes) noexcept {
    if (bytes < huge_page_bytes) return reserve(bytes, page_bytes());
    const auto skipped = static_cast<std::size_t>(offset % huge_page_bytes);
    if (bytes > SIZE_MAX - skipped) return nullptr;
    void* const place = reserve(skipped + bytes, huge_page_bytes);
    if (place == nullptr) return nullptr;
    if (skipped > 0) release(place, skipped);
    return static_cast<char*>(place) + skipped;
}

}  // namespace

InputFile::~InputFile() {
    const SystemCalls system_calls;
    if (handle_ != none) ::close(descriptor(handle_));
}

InputFile InputFile::open(const char* path, std::error_code& error) {
    const SystemCalls system_calls;
    // Opening a pipe must not wait for its writer, and a terminal must not become the controlling
    // one.
    const int file = ::open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0) error = last_error();
    return InputFile(file);
}

FileKind InputFile::kind() const noexcept {
    const SystemCalls system_calls;
    struct stat status {};
    return fstat(descriptor(handle_), &status) == 0 ? kind_of(status.st_mode) : FileKind::none;
}

std::uint64_t InputFile::bytes() const noexcept {
    const SystemCalls system_calls;
    struct stat status {};
    if (fstat(descriptor(handle_), &status) != 0) return 0;
    return static_cast<std::uint64_t>(std::max<off_t>(status.st_size, 0));
}

std::size_t InputFile::read(std::uint64_t offset, void* to, std::size_t bytes,
                            std::error_code& error) const noexcept {
    const SystemCalls system_calls;
    std::size_t done = 0;
    while (done < bytes) {
        const ssize_t got = ::pread(descriptor(handle_), static_cast<char*>(to) + done,
                                    bytes - done, static_cast<off_t>(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) error = last_error();
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    return done;
}

FileMapping InputFile::map(std::uint64_t offset, std::size_t bytes, bool shared,
                           std::error_code& error) const noexcept {
    const SystemCalls system_calls;
    const std::size_t whole = base::align_up(bytes, page_bytes());
    void* const place = find_place(offset, whole);
    if (place == nullptr) {
        error = {ENOMEM, std::system_category()};
        return {};
    }
    const int how = (shared ? MAP_SHARED : MAP_PRIVATE) | MAP_FIXED;
    if (mmap(place, whole, PROT_READ, how, descriptor(handle_), static_cast<off_t>(offset)) !=
        MAP_FAILED) {
        return {place, whole};
    }
    error = last_error();
    release(place, whole);
    return {};
}

std::size_t mapping_granularity() noexcept {
    return page_bytes();
}

}  // namespace tensorpool::platform
