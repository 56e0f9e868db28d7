#include "run/follow.hpp"

#include <poll.h>

#include <algorithm>
#include <array>

namespace tensorpool::command::run {
namespace {

/// A ring holds 16,384 entries. At one call per microsecond, it is full after 16 ms.
constexpr int shortest_pause_ms = 1;
/// If one read returns this many entries, the next follows at once.
constexpr std::size_t many_entries = 8192;

constexpr int without_end = -1;

int next_pause(int pause, int longest, std::size_t entries) {
    if (entries >= many_entries) return 0;
    return entries != 0 ? shortest_pause_ms : std::clamp(pause * 2, shortest_pause_ms, longest);
}

bool wait(std::array<pollfd, 3>& watched, int pause_ms) {
    return ::poll(watched.data(), watched.size(), pause_ms) > 0;
}

/// Reads the messages sent before the program ended. The rounds are limited, because other
/// processes may still send.
void take_last_messages(Observer& observer, Family& family) {
    constexpr int max_rounds = 64;
    pollfd callers{observer.descriptor(), POLLIN, 0};
    for (int i = 0; i<max_rounds&& ::poll(&callers, 1, 0)> 0; ++i) {
        observer.take([&](Message message) { family.take(std::move(message)); });
    }
}

}  // namespace

void follow(Program& program, const Signals& signals, Observer& observer, Family& family,
            bool polls) {
    std::array<pollfd, 3> watched = {{{signals.descriptor(), POLLIN, 0},
                                      {observer.descriptor(), POLLIN, 0},
                                      {family.descriptor(), POLLIN, 0}}};
    const int longest_pause_ms = family.longest_pause_ms();
    int pause_ms = polls ? longest_pause_ms : without_end;
    while (!program.has_ended()) {
        if (wait(watched, pause_ms)) {
            for (const signalfd_siginfo& signal : signals.take()) program.take(signal);
            observer.take([&](Message message) { family.take(std::move(message)); });
            family.take_ended();
        }
        if (!polls) continue;
        family.look();
        pause_ms = next_pause(pause_ms, longest_pause_ms, family.take_entries());
    }
    take_last_messages(observer, family);
    family.finish();
}

}  // namespace tensorpool::command::run
