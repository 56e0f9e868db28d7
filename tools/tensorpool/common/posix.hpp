#pragma once

/// @file
/// File descriptors, signals and arguments of processes.

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace tensorpool::command {

/// Owns a file descriptor and closes it; -1: none.
class Descriptor {
public:
    Descriptor() noexcept = default;
    explicit Descriptor(int number) noexcept : number_(number) {}
    Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }

    explicit operator bool() const noexcept { return number_ >= 0; }
    int number() const noexcept { return number_; }
    int release() noexcept { return std::exchange(number_, -1); }

private:
    int number_ = -1;
};

/// Returns the value of an environment variable; "" if it is not set.
inline std::string variable(const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? "" : value;
}

/// Writes all of `bytes`. Returns whether that succeeded; if not, `errno` is the reason.
inline bool write_all(const Descriptor& file, std::span<const std::byte> bytes) noexcept {
    while (!bytes.empty()) {
        const ssize_t count = ::write(file.number(), bytes.data(), bytes.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return true;
}

/// Returns pointers to the texts, followed by a null pointer, as execve(2) takes them.
inline std::vector<char*> null_ended(std::vector<std::string>& texts) {
    std::vector<char*> pointers;
    for (std::string& text : texts) pointers.push_back(text.data());
    pointers.push_back(nullptr);
    return pointers;
}

/// Blocks SIGINT, SIGTERM and SIGHUP, so that the program can wait for them instead of being ended
/// by them. Construct it before starting a thread: threads inherit the signal mask of the thread
/// that creates them.
class EndSignals {
public:
    EndSignals() {
        sigemptyset(&signals_);
        for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
        pthread_sigmask(SIG_BLOCK, &signals_, &before_);
    }
    ~EndSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    EndSignals(const EndSignals&) = delete;
    EndSignals& operator=(const EndSignals&) = delete;

    void wait() const {
        int signal = 0;
        while (sigwait(&signals_, &signal) != 0) {
        }
    }
    /// Sleeps for `time`, or until one of the signals arrives. Returns whether one has arrived, now
    /// or before.
    bool come_within(std::chrono::nanoseconds time) {
        time = std::max(time, time.zero());
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(time);
        const timespec span{.tv_sec = whole.count(), .tv_nsec = (time - whole).count()};
        if (sigtimedwait(&signals_, nullptr, &span) > 0) came_ = true;
        return came_;
    }

private:
    sigset_t signals_{};
    sigset_t before_{};
    bool came_ = false;
};

/// Opens a regular file for reading. It looks at the type first, because opening a device may have
/// effects. If the file is replaced then, opening it neither blocks nor sets the controlling
/// terminal. Returns none if that fails, with the reason in `errno`; it is 0 for another type of
/// file.
inline Descriptor open_regular_file(const std::string& path) noexcept {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) return {};
    errno = 0;
    if (!S_ISREG(about.st_mode)) return {};
    return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

}  // namespace tensorpool::command
