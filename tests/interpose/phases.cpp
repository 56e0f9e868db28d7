// Allocation in special phases of a program: before main, after exit, in thread-local destructors
// of the main thread, with the smallest stack that a thread may have, and in handlers around a
// fork.

#include <pthread.h>
#include <sys/wait.h>

#include <climits>
#include <memory>
#include <vector>

#include "interpose/interposed.hpp"

namespace {

using namespace tensorpool::testing;
using std::size_t;

bool allocates() {
    bool good = true;
    for (const size_t bytes : {1UL, 100UL, 5000UL, 65'536UL, 100'000UL, 3'000'000UL}) {
        auto* const p = static_cast<char*>(std::malloc(bytes));
        good = good && p != nullptr && is_of_pool(p) == (bytes >= minimum());
        if (p == nullptr) continue;
        p[0] = p[bytes - 1] = 'a';
        char* const q = static_cast<char*>(std::realloc(p, bytes * 3));
        good = good && q != nullptr && q[0] == 'a' && q[bytes - 1] == 'a';
        std::free(q);
    }
    return good;
}

void* kept_from_before_main = nullptr;

struct Static {
    Static() {
        expect(allocates(), "memory before main");
        kept_from_before_main = std::malloc(200'000);
    }
    ~Static() { end(allocates()); }
    static void end(bool good) {
        if (!good) std::_Exit(3);
    }
};
const Static before_main;

struct Local {
    ~Local() { Static::end(allocates()); }
};
thread_local Local local;

void* on_small_stack(void*) {
    return allocates() ? kept_from_before_main : nullptr;
}

void try_small_stack() {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, static_cast<size_t>(PTHREAD_STACK_MIN) * 2);
    pthread_t thread{};
    void* result = nullptr;
    expect(pthread_create(&thread, &attributes, on_small_stack, nullptr) == 0, "a thread");
    pthread_join(thread, &result);
    expect(result != nullptr, "memory for a thread with a small stack");
}

// Adds many handlers that allocate, after the pool's, so that their list grows.
void try_fork_handlers() {
    static std::vector<void*> made;
    for (int i = 0; i < 100; ++i) {
        const auto handler = [] {
            made.push_back(std::malloc(100'000));
            if (!allocates()) std::_Exit(4);
        };
        pthread_atfork(handler, handler, handler);
    }
    const pid_t child = fork();
    if (child == 0) alarm(20);
    if (child == 0) _exit(allocates() && made.size() == 200 ? 0 : 5);
    int status = 0;
    expect(waitpid(child, &status, 0) == child && status == 0, "a child that works");
    for (void* const p : made) std::free(p);
}

}  // namespace

int main() {
    expect_interposed();
    alarm(60);
    (void)&local;
    local = Local();
    for (int i = 0; i < 100; ++i) std::atexit([] { Static::end(allocates()); });
    try_small_stack();
    try_fork_handlers();
    expect(is_of_pool(kept_from_before_main), "a block from before main");
    std::free(kept_from_before_main);
    return failures == 0 ? 0 : 1;
}
