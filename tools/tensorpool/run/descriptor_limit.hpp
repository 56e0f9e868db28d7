#pragma once

#include <sys/resource.h>

namespace tensorpool::command::run {

/// As many descriptors as the system lets this process have: each process of the program takes
/// some. The program itself has as many as it would have without us.
class DescriptorLimit {
public:
    DescriptorLimit() noexcept {
        getrlimit(RLIMIT_NOFILE, &before_);
        rlimit more = before_;
        more.rlim_cur = before_.rlim_max;
        setrlimit(RLIMIT_NOFILE, &more);
    }
    void restore() const noexcept { setrlimit(RLIMIT_NOFILE, &before_); }

private:
    rlimit before_{};
};

}  // namespace tensorpool::command::run
