#include "platform/files/trace_output.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/uio.h>
#include <unistd.h>

#if __has_include(<sys/auxv.h>)
#include <sys/auxv.h>
#endif

#include <cstdio>
#include <cstring>

#include "platform/files/no_size_signal_posix.hpp"
#include "platform/system_calls.hpp"

namespace tensorpool::platform {
namespace {

/// Returns whether the program has more rights than the user who started it. Such a program must
/// not open a file at a path that this user chose.
bool has_more_rights() noexcept {
#ifdef AT_SECURE
    return getauxval(AT_SECURE) != 0;
#else
    return issetugid() != 0;
#endif
}

/// Opens and locks the file. Returns -1 with the reason in errno, which is EWOULDBLOCK if another
/// process is writing it.
int open_locked(const char* path) noexcept {
    if (has_more_rights()) {
        errno = EPERM;
        return -1;
    }
    const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0600);
    if (file < 0) return -1;
    if (flock(file, LOCK_EX | LOCK_NB) == 0) return file;
    const int reason = errno;
    ::close(file);
    errno = reason;
    return -1;
}

/// Opens and locks the file, under another name if another process is writing it. Returns -1 with
/// the reason in errno.
template <std::size_t Bytes>
int open_own(const char* path, char (&opened)[Bytes]) noexcept {
    int length = std::snprintf(opened, Bytes, "%s", path);
    const auto open_it = [&] {
        errno = ENAMETOOLONG;  // a truncated path would name another file
        const bool fits = length > 0 && static_cast<std::size_t>(length) < Bytes;
        return fits ? open_locked(opened) : -1;
    };
    const int file = open_it();
    if (file >= 0 || errno != EWOULDBLOCK) return file;
    length = std::snprintf(opened, Bytes, "%s.%d", path, static_cast<int>(getpid()));
    return open_it();
}

// strerror_r returns the text in GNU's C library and stores it in the given buffer in others.
[[maybe_unused]] const char* text_of(const char* given, const char*) noexcept {
    return given;
}
[[maybe_unused]] const char* text_of(int, const char* put) noexcept {
    return put;
}

}  // namespace

bool TraceOutput::open(const char* path) noexcept {
    const SystemCalls system_calls;
    const int file = open_own(path, path_);
    if (file < 0 || ftruncate(file, 0) != 0) {
        char text[sizeof problem_] = {};
        std::snprintf(problem_, sizeof problem_, "%s",
                      text_of(strerror_r(errno, text, sizeof text), text));
        if (file >= 0) ::close(file);
        return false;
    }
    file_ = file;
    return true;
}

void TraceOutput::close() noexcept {
    const SystemCalls system_calls;
    if (file_ >= 0) ::close(file_);
    file_ = -1;
}

bool TraceOutput::append(Part first, Part second) noexcept {
    const SystemCalls system_calls;
    const NoSizeSignal no_size_signal;
    const iovec parts[] = {{const_cast<void*>(first.data), first.bytes},
                           {const_cast<void*>(second.data), second.bytes}};
    ssize_t written = 0;
    // A signal may interrupt before the first byte. After that, a regular file takes everything
    // unless the disk is full.
    do {
        written = writev(file_, parts, 2);
    } while (written < 0 && errno == EINTR);
    return written == static_cast<ssize_t>(first.bytes + second.bytes);
}

}  // namespace tensorpool::platform
