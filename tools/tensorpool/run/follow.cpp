#include "run/follow.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

namespace tensorpool::command::run {
namespace {

/// A ring holds 16,384 entries: at a call every microsecond it is full after 16 ms.
constexpr int shortest_pause_ms = 1;
constexpr int longest_pause_ms = 8;
/// So many at one look that the next comes at once.
constexpr std::size_t many_entries = 8192;

constexpr int without_end = -1;

int next_pause(int pause, std::size_t entries) {
    if (entries >= many_entries) return 0;
    return entries != 0 ? shortest_pause_ms
                        : std::clamp(pause * 2, shortest_pause_ms, longest_pause_ms);
}

bool wait(std::array<pollfd, 3>& watched, int pause_ms) {
    return ::poll(watched.data(), watched.size(), pause_ms) > 0;
}

/// Those that spoke before the program ended; a few rounds, for others may go on.
void hear_the_last(Observer& observer, Family& family) {
    constexpr int max_rounds = 64;
    pollfd callers{observer.descriptor(), POLLIN, 0};
    for (int i = 0; i<max_rounds&& ::poll(&callers, 1, 0)> 0; ++i) {
        observer.take([&](Message message) { family.take(std::move(message)); });
    }
}

}  // namespace

void follow(Program& program, const Signals& signals, Observer& observer, Family& family,
            bool traces) {
    std::array<pollfd, 3> watched = {{{signals.descriptor(), POLLIN, 0},
                                      {observer.descriptor(), POLLIN, 0},
                                      {family.descriptor(), POLLIN, 0}}};
    int pause_ms = traces ? longest_pause_ms : without_end;
    while (!program.has_ended()) {
        if (wait(watched, pause_ms)) {
            for (const signalfd_siginfo& signal : signals.take()) program.take(signal);
            observer.take([&](Message message) { family.take(std::move(message)); });
            family.take_ended();
        }
        if (traces) pause_ms = next_pause(pause_ms, family.take_entries());
    }
    hear_the_last(observer, family);
    family.finish();
}

}  // namespace tensorpool::command::run
