#include "serve/signals.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace tensorpool::command::serve {

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

void raise_descriptor_limit() {
    constexpr rlim_t enough = 65536;
    rlimit limit = {};
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = std::max(limit.rlim_cur, std::min(limit.rlim_max, enough));
    setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace tensorpool::command::serve
