#include "pool_process.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <stdexcept>
#include <tensorpool/memory_pool.hpp>
#include <vector>

namespace tensorpool::command::serve::testing {
namespace {

using Pools = std::vector<std::unique_ptr<MemoryPool>>;

Pools make_pools(const std::string& name, unsigned count) {
    Pools pools;
    for (unsigned i = 0; i < count; ++i) {
        const std::string numbered = name + std::to_string(i);
        PoolOptions options;
        options.name = numbered.c_str();
        pools.push_back(std::make_unique<MemoryPool>(options));
    }
    return pools;
}

/// Allocates and frees a little in each pool every millisecond, and keeps one block.
[[noreturn]] void work(const std::string& name, unsigned count, int ready) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const Pools pools = make_pools(name, count);
    for (const auto& pool : pools) static_cast<void>(pool->allocate(100'000));
    if (write(ready, "", 1) != 1) _exit(1);
    for (;;) {
        for (const auto& pool : pools) pool->deallocate(pool->allocate(1000), 1000);
        poll(nullptr, 0, 1);
    }
}

}  // namespace

PoolProcess::PoolProcess(const std::string& name, unsigned pools) {
    int ends[2];
    if (pipe(ends) != 0) throw std::runtime_error("no pipe");
    process_ = fork();
    if (process_ == 0) work(name, pools, ends[1]);
    close(ends[1]);
    char byte;
    const bool ready = process_ > 0 && ::read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    if (!ready) throw std::runtime_error("the process with pools did not start");
}

void PoolProcess::kill() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = -1;
}

}  // namespace tensorpool::command::serve::testing
