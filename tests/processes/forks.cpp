#include <sys/wait.h>
#include <unistd.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "blocks.hpp"
#include "lives.hpp"

namespace processes {
namespace {

/// Runs in a child, which has no other thread of its parent.
[[noreturn]] void work_in_child(unsigned number) {
    work(number, 100);
    if (number % 8 == 0) std::thread([number] { work(number + 1, 100); }).join();
    // Both with and without exit handlers.
    if (number % 2 == 0) std::exit(0);
    _exit(0);
}

bool child_succeeds(pid_t child) {
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) fail("fork or waitpid failed");
    if (status != 0) std::fprintf(stderr, "process_lives: a child ended with %#x\n", status);
    return status == 0;
}

}  // namespace

int fork_at_work(unsigned count) {
    unsigned failures = 0;
    {
        const Workers workers(3);
        for (unsigned i = 0; i < count; ++i) {
            work(i, 10);
            const pid_t child = fork();
            if (child == 0) work_in_child(i);
            failures += child_succeeds(child) ? 0 : 1;
        }
    }
    std::printf("%u of %u children failed\n", failures, count);
    return failures == 0 ? 0 : 1;
}

int fork_at_first_allocation(unsigned seed) {
    constexpr unsigned thread_count = 3;
    std::barrier begin(thread_count + 1);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < thread_count; ++i) {
        threads.emplace_back([&begin, i] {
            begin.arrive_and_wait();
            void* const p = take(std::size_t{2} << 20);  // above every minimum of the interposer
            work(i, 50);
            give(p, std::size_t{2} << 20);
        });
    }
    begin.arrive_and_wait();
    for (volatile unsigned i = 0; i < seed % 100 * 5000; i = i + 1) {
    }
    const pid_t child = fork();
    if (child == 0) work_in_child(seed);
    for (std::thread& thread : threads) thread.join();
    work(seed, 50);
    return child_succeeds(child) ? 0 : 1;
}

}  // namespace processes
