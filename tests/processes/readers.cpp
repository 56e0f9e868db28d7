#include <unistd.h>

#include <cstdio>

#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_reader.hpp>
#include <tensorpool/trim_request.hpp>

#include "blocks.hpp"
#include "lives.hpp"

namespace processes {

int run_until_killed() {
    const Workers workers(2);
    work(1, 100);
    std::puts("ready");
    std::fflush(stdout);
    for (;;) pause();
}

int read_until_ended(unsigned process) {
    unsigned long snapshots = 0;
    try {
        for (;; ++snapshots) {
            auto reader = tensorpool::StatisticsReader::attach(process);
            const auto request = tensorpool::TrimRequest::ask(process);
            for (unsigned i = 0; i < 20; ++i, ++snapshots) {
                for (const tensorpool::PoolStatistics& pool : reader.snapshot().pools) {
                    if (pool.deallocations > pool.allocations) fail("more frees than allocations");
                    if (pool.in_use_bytes > pool.capacity_bytes) fail("more in use than there is");
                }
                (void)reader.entries_since();
                (void)request.trimmed_bytes();
            }
            (void)tensorpool::StatisticsReader::list();
        }
    } catch (const tensorpool::AttachError& error) {
        using enum tensorpool::AttachFailure;
        std::printf("%lu %s\n", snapshots, error.what());
        return error.failure() == ended || error.failure() == no_process ||
                       error.failure() == no_segment
                   ? 0
                   : 1;
    }
}

}  // namespace processes
