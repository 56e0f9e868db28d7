#include "statistics/sums/thread_names.hpp"

#include "platform/process/processes.hpp"

namespace tensorpool::statistics {

void ThreadNames::put_into(std::vector<ThreadStatistics>& threads, std::uint64_t process,
                           std::uint64_t now_ns) {
    if (now_ns - since_ns_ >= period_ns) {
        names_.clear();
        since_ns_ = now_ns;
    }
    for (ThreadStatistics& thread : threads) {
        if (thread.thread == 0) continue;
        const auto [known, is_new] = names_.try_emplace(thread.thread);
        if (is_new) known->second = platform::thread_name(process, thread.thread);
        thread.name = known->second;
    }
}

}  // namespace tensorpool::statistics
