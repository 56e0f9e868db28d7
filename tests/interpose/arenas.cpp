// Arenas and scratches of threads that record objects and begin scopes while another thread forks.
// They call malloc under locks that a fork takes. With checks, each malloc takes the pool's locks
// too.

#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

#include <tensorpool/arena.hpp>
#include <tensorpool/scratch.hpp>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool;
using namespace tensorpool::testing;

std::atomic<bool> done = false;

void work(unsigned number) {
    while (!done) {
        Arena arena(ArenaOptions{.name = "arena " + std::to_string(number), .objects = true});
        for (std::size_t i = 0; i < 50; ++i) {
            void* const block = arena.allocate(1000);
            arena.record(block, {.name = "an object with a long name " + std::to_string(i),
                                 .kind = "test",
                                 .bytes = 1000});
        }
        arena.reset();
        Scratch& scratch = Scratch::local();
        for (std::size_t i = 0; i < 20; ++i) {
            const ScratchScope scope(scratch, "an operator of thread " + std::to_string(number));
            scratch.allocate(std::size_t{1} << (i % 5 + 20));
        }
    }
}

/// Forks, and returns whether the child can allocate.
bool forks_well() {
    const pid_t child = fork();
    if (child == 0) {
        alarm(20);
        done = true;
        std::free(std::malloc(100'000));
        Arena arena;
        _exit(arena.allocate(1000) != nullptr ? 0 : 1);
    }
    int status = 0;
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

}  // namespace

// An argument may give the number of forks.
int main(int count, char** arguments) {
    const int forks = count > 1 ? std::atoi(arguments[1]) : 300;
    expect_interposed();
    alarm(100);
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < 4; ++i) threads.emplace_back(work, i);
    for (int i = 0; i < forks; ++i) expect(forks_well(), "a child that works");
    done = true;
    for (std::thread& thread : threads) thread.join();
    return failures == 0 ? 0 : 1;
}
