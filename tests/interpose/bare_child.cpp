// A child that is made by the system call clone, without the handlers of a fork, as sandboxes make
// it. It lacks the memory that the process shares with others, and other threads may have held
// locks; it must be able to use malloc.

#include <malloc.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;

void use_memory() {
    for (const std::size_t bytes : {100, 5'000, 100'000, 3'000'000}) {
        void* const block = hidden(std::malloc(bytes));
        fill(block, bytes, 7);
        expect(is_filled(block, bytes, 7), "the content of a block", bytes);
        std::free(block);
    }
}

char* filled_block(std::size_t bytes) {
    char* const block = hidden(static_cast<char*>(std::malloc(bytes)));
    fill(block, bytes, 7);
    return block;
}

void* nothing = nullptr;  // a block of 0 bytes

void expect_success_of(pid_t child, const char* name, char* inherited, std::size_t bytes) {
    if (child == 0) {
        alarm(60);  // a child that waits for a lock is killed
        expect(is_filled(inherited, bytes, 7), "the content of a block", bytes);
        inherited = static_cast<char*>(std::realloc(inherited, 2 * bytes));
        expect(is_filled(inherited, bytes, 7), "the content of a block", bytes);
        std::free(inherited);
        void* const more = std::realloc(nothing, 100);
        fill(more, 100, 7);
        std::free(more);
        use_memory();
        malloc_trim(0);
        if (failures == 0) std::exit(0);
        _exit(1);
    }
    int status = 0;
    const bool ended = child > 0 && waitpid(child, &status, 0) == child;
    expect(ended && status == 0, name, static_cast<std::size_t>(status));
}

}  // namespace

int main() {
    expect_interposed();
    use_memory();
    nothing = hidden(std::malloc(0));
    // Blocks of all kinds: in the thread's caches, of shared spans and of whole pages.
    std::atomic<bool> ends = false;
    std::vector<std::thread> threads;
    for (int turn = 0; turn < 8; ++turn) {
        if (turn == 4) {
            for (unsigned seed = 1; seed != 3; ++seed) {
                threads.emplace_back([&ends, seed] {
                    std::array<char*, 8> blocks = {};
                    for (std::size_t i = seed; !ends.load(); i = i * 69069 + 1) {
                        char*& block = blocks[i / 7 % blocks.size()];
                        std::free(block);
                        const std::size_t bytes = 70'000 + i / 64 % 1'000'000;
                        block = hidden(static_cast<char*>(std::malloc(bytes)));
                        block[0] = block[bytes - 1] = 1;
                    }
                    for (char* const block : blocks) std::free(block);
                });
            }
        }
        for (const std::size_t bytes : {200, 100'000, 5'000'000}) {
            char* const block = filled_block(bytes);
            const auto clone = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
            expect_success_of(clone, "clone", block, bytes);
            expect_success_of(fork(), "fork", block, bytes);
#if __GLIBC_PREREQ(2, 34)
            expect_success_of(_Fork(), "_Fork", block, bytes);
#endif
            std::free(block);
        }
    }
    ends = true;
    for (std::thread& thread : threads) thread.join();
    use_memory();
    return failures != 0 ? 1 : 0;
}
