// Threads whose stacks the C library frees under its lock of all threads: no allocation and no free
// may start a thread, which takes the same lock. The background trimmer starts when the program
// creates its first thread, and not before.

#include <pthread.h>
#include <threads.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;
using std::size_t;

// Their stacks of 8 MiB exceed the 40 MiB that the C library keeps.
constexpr unsigned thread_count = 40;
constexpr size_t mib = size_t{1} << 20;

unsigned count_trimmers() {
    unsigned count = 0;
    for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        std::string name;
        std::getline(std::ifstream(thread.path() / "comm"), name);
        count += name == "tensorpool-trim" ? 1 : 0;
    }
    return count;
}

void free_much() {
    std::vector<void*> blocks(16);
    for (void*& block : blocks) block = hidden(std::malloc(8 * mib));
    for (void* const block : blocks) std::free(block);
}

struct Meeting {
    pthread_barrier_t barrier;
    Meeting() { pthread_barrier_init(&barrier, nullptr, thread_count + 1); }
    void wait() { pthread_barrier_wait(&barrier); }
};

void* use_memory(void* meeting) {
    std::vector<void*> blocks(2000);
    for (size_t i = 0; i < blocks.size(); ++i) {
        blocks[i] = hidden(std::malloc(100 + i % 50 * 50));
        std::memset(blocks[i], 1, 100);
    }
    void* const large = hidden(std::malloc(100'000));
    static_cast<Meeting*>(meeting)->wait();
    for (void* const block : blocks) std::free(block);
    std::free(large);
    static_cast<Meeting*>(meeting)->wait();
    return nullptr;
}

void end_many_threads() {
    pthread_attr_t with_large_stack;
    pthread_attr_init(&with_large_stack);
    pthread_attr_setstacksize(&with_large_stack, 8 * mib);
    Meeting meeting;
    std::vector<pthread_t> threads(thread_count);
    for (pthread_t& thread : threads) {
        expect(pthread_create(&thread, &with_large_stack, use_memory, &meeting) == 0, "a thread");
    }
    meeting.wait();
    meeting.wait();
    for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

int do_nothing(void*) {
    return 7;
}

void create_a_thread_of_c11() {
    thrd_t thread;
    expect(thrd_create(&thread, do_nothing, nullptr) == thrd_success, "a thread of C11");
    int result = 0;
    thrd_join(thread, &result);
    expect(result == 7, "the result of the thread");
}

}  // namespace

int main() {
    expect_interposed();
    free_much();
    expect(count_trimmers() == 0, "no trimmer in a program with one thread");
    create_a_thread_of_c11();
    expect(count_trimmers() == 1, "a trimmer after the first thread", count_trimmers());
    free_much();
    end_many_threads();
    expect(count_trimmers() == 1, "one trimmer", count_trimmers());
    return failures != 0 ? 1 : 0;
}
