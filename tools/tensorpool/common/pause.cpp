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

}  // namespace tensorpool::command
