// Forks beside threads that allocate under the locks of streams, and a thread that locks all
// streams.

#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "interpose/interposed.hpp"

using namespace tensorpool::testing;

namespace {

constexpr int forks = 150;

std::atomic<bool> is_done = false;

void fork_often() {
    for (int i = 0; i != forks; ++i) {
        const pid_t child = fork();
        if (child == 0) {
            std::fflush(nullptr);  // the child can lock the list of streams
            _exit(17);
        }
        int status = 0;
        const bool ended = child > 0 && waitpid(child, &status, 0) == child;
        expect(ended && WEXITSTATUS(status) == 17, "a child that ends",
               static_cast<std::size_t>(status));
    }
}

/// The line of 100,000 characters needs a block that grows while the stream is locked.
void read_line(const char* path) {
    while (!is_done) {
        std::FILE* const file = std::fopen(path, "r");
        char* line = nullptr;
        std::size_t bytes = 0;
        expect(file != nullptr && getline(&line, &bytes, file) > 100'000, "a line");
        std::free(line);
        if (file != nullptr) std::fclose(file);
    }
}

void flush_all() {
    while (!is_done) std::fflush(nullptr);
}

}  // namespace

int main() {
    expect_interposed();
    fork_often();  // with one thread
    char path[] = "/tmp/tensorpool-line-XXXXXX";
    const int file = mkstemp(path);
    const std::string line(100'000, 'x');
    expect(write(file, (line + '\n').data(), line.size() + 1) > 0, "a file");
    std::vector<std::thread> threads;
    for (int i = 0; i != 4; ++i) threads.emplace_back(read_line, path);
    threads.emplace_back(flush_all);
    std::vector<std::thread> forking(2);
    for (std::thread& thread : forking) thread = std::thread(fork_often);
    for (std::thread& thread : forking) thread.join();
    is_done = true;
    for (std::thread& thread : threads) thread.join();
    close(file);
    unlink(path);
    return failures;
}
