// No call on the pool allocates with malloc while it may hold a lock, since the pool may be what
// serves malloc. This program has a malloc of its own that counts calls while it is watched. It
// makes the C library need memory for the next exit handler and for each thread-specific key.

#include <pthread.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <tensorpool/memory_pool.hpp>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
}

namespace {

thread_local const char* watched = nullptr;
thread_local int calls = 0;
int failures = 0;

void count() {
    ++calls;
    if (watched == nullptr) return;
    ++failures;
    char line[200];
    const int length = std::snprintf(line, sizeof line, "malloc was called: %s\n", watched);
    if (write(STDERR_FILENO, line, static_cast<std::size_t>(length)) < 0) std::abort();
}

}  // namespace

extern "C" {
void* malloc(std::size_t bytes) {
    count();
    return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
    count();
    return __libc_calloc(number, bytes);
}
void* realloc(void* p, std::size_t bytes) {
    count();
    return __libc_realloc(p, bytes);
}
}

namespace {

using tensorpool::get_global_memory_pool;

/// Adds exit handlers until the current piece of their list is full, so that the next one needs
/// memory.
void fill_exit_handlers() {
    const auto add = [] {
        const int before = calls;
        std::atexit([] {});
        return calls != before;
    };
    while (!add()) {
    }
    for (int i = 0; i < 31; ++i) {
        if (add()) std::puts("exit handlers do not come in pieces of 32: the test checks less");
    }
}

/// Creates so many keys that a thread needs memory to set one: from the 33rd key on.
void use_up_keys() {
    pthread_key_t key{};
    for (int i = 0; i < 40; ++i) pthread_key_create(&key, nullptr);
    const int before = calls;
    pthread_setspecific(key, &key);
    if (calls == before) std::puts("no key needs memory: the test checks less");
}

void use_pool(const char* when) {
    watched = when;
    auto& pool = get_global_memory_pool();
    void* blocks[300];
    for (std::size_t i = 0; i < 300; ++i) blocks[i] = pool.allocate((i + 1) * (i + 1) * 10);
    for (void* const block : blocks) pool.deallocate(block);
    pool.deallocate(pool.allocate_zeroed(1000, 1000));
    pool.deallocate(pool.allocate(100, 8192));
    pool.trim();
    watched = nullptr;
}

void* in_thread(void*) {
    use_pool("in a thread's first use of the pool");
    watched = "at the end of a thread";
    return nullptr;
}

}  // namespace

int main() {
    fill_exit_handlers();
    use_up_keys();
    use_pool("in the first use of the pool");
    pthread_t thread{};
    pthread_create(&thread, nullptr, in_thread, nullptr);
    pthread_join(thread, nullptr);
    const int before = calls;
    void* volatile counted = std::malloc(100);
    std::free(counted);
    if (calls == before) std::puts("this program's malloc is not called: the test checks nothing");
    return failures == 0 && calls != before ? 0 : 1;
}
