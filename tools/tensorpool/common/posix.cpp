#include "common/posix.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <ctime>

namespace tensorpool::command {

Descriptor open_regular_file(const std::string& path) noexcept {
    struct stat about {};
    if (::stat(path.c_str(), &about) != 0) return {};
    errno = 0;
    if (!S_ISREG(about.st_mode)) return {};
    return Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
}

EndSignals::EndSignals() {
    sigemptyset(&signals_);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals_, signal);
    pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

EndSignals::~EndSignals() {
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void EndSignals::wait() const {
    int signal = 0;
    while (sigwait(&signals_, &signal) != 0) {
    }
}

bool EndSignals::come_within(std::chrono::nanoseconds time) {
    using std::chrono::seconds;
    const auto whole = std::chrono::duration_cast<seconds>(std::max(time, time.zero()));
    const timespec span{.tv_sec = whole.count(),
                        .tv_nsec = (std::max(time, time.zero()) - whole).count()};
    if (sigtimedwait(&signals_, nullptr, &span) > 0) came_ = true;
    return came_;
}

}  // namespace tensorpool::command
