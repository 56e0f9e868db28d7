#include "common/pause.hpp"

#include <algorithm>
#include <thread>

namespace tensorpool::command {

void pause_until(std::chrono::steady_clock::time_point time, const StatisticsReader& reader) {
    using namespace std::chrono_literals;
    for (auto now = std::chrono::steady_clock::now(); now < time && reader.is_running();
         now = std::chrono::steady_clock::now()) {
        std::this_thread::sleep_for(
            std::min<std::chrono::steady_clock::duration>(time - now, 100ms));
    }
}

bool wait_for_answer(const StatisticsReader& process, std::chrono::nanoseconds patience,
                     const std::function<bool()>& has_answered) {
    constexpr std::chrono::milliseconds between_looks{2};
    const auto begin = std::chrono::steady_clock::now();
    bool answered = has_answered();
    while (!answered && process.is_running() &&
           std::chrono::steady_clock::now() - begin < patience) {
        std::this_thread::sleep_for(between_looks);
        answered = has_answered();
    }
    return answered;
}

}  // namespace tensorpool::command
