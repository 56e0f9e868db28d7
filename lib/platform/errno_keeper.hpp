#pragma once

#include <cerrno>

namespace tensorpool::platform {

/// Gives `errno` its value back at the end of a scope: what is allocated through us must not change
/// it, as `free` must not by POSIX of 2024.
class ErrnoKeeper {
public:
    ErrnoKeeper() noexcept = default;
    ~ErrnoKeeper() { errno = kept_; }
    ErrnoKeeper(const ErrnoKeeper&) = delete;
    ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

private:
    int kept_ = errno;
};

}  // namespace tensorpool::platform
