#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <tensorpool/arena.hpp>
#include <tensorpool/context.hpp>
#include <tensorpool/errors.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/scratch.hpp>
#include <tensorpool/snapshot.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "blocks.hpp"
#include "lives.hpp"

namespace processes {
namespace {

#ifdef __OPTIMIZE__
constexpr std::size_t small_bytes = 16 << 10;
#else
constexpr std::size_t small_bytes = 64 << 10;
#endif
constexpr std::size_t measured_bytes = 512 << 10;
constexpr unsigned char paint = 0xA5;

/// One kind of call, made on a thread of its own.
struct Calls {
    const char* name;
    void (*make)();
    /// The calls are a misuse, which ends the process with a report.
    bool is_misuse = false;
};

void take_and_give(std::size_t bytes) {
    give(take(bytes), bytes);
}
// Misses every cache and makes the pool grow.
void take_many() {
    std::array<void*, 100> blocks;
    for (unsigned round = 0; round < 3; ++round) {
        for (void*& block : blocks) block = take(60'000);
        for (void* const block : blocks) give(block, 60'000);
    }
}
// Sizes of every bucket, and enough requests for guarded blocks.
void take_all_sizes() {
    for (unsigned i = 0; i < 5'000; ++i) take_and_give(i * 131 % 200'000 + 1);
}
void take_large() {
    take_and_give(1 << 20);
    take_and_give(40 << 20);
}
void take_too_much() {
    try {
        (void)tensorpool::get_global_memory_pool().allocate(SIZE_MAX / 4);
    } catch (const tensorpool::AllocationError&) {
        return;
    }
    fail("no exception");
}
void reallocate() {
    tensorpool::MemoryPool& pool = tensorpool::get_global_memory_pool();
    void* p = pool.allocate_zeroed(1, 100);
    std::size_t bytes = 100;
    for (const std::size_t more : {5'000, 100'000, 20'000'000}) {
        p = pool.reallocate(p, bytes, more);
        bytes = more;
    }
    pool.deallocate(p);
}

void use_arena() {
    tensorpool::Arena arena;
    for (unsigned i = 0; i < 100; ++i) (void)arena.allocate(i * 1000 + 1);
    arena.reset();
    arena.trim();
    (void)arena.statistics();
}
void use_scratch() {
    const tensorpool::ScratchScope scope("small stack");
    for (unsigned i = 0; i < 100; ++i) (void)tensorpool::Scratch::local().allocate(i * 1000 + 1);
}
void use_pool_of_its_own() {
    tensorpool::MemoryPool pool;
    for (const std::size_t bytes : {100, 10'000, 1'000'000}) {
        pool.deallocate(pool.allocate(bytes), bytes);
    }
    pool.trim();
}

void read_statistics() {
    (void)to_text(tensorpool::get_global_memory_pool().statistics());
    (void)to_json(tensorpool::get_global_memory_pool().statistics());
}
void read_snapshot() {
    (void)to_text(tensorpool::take_snapshot());
}
void read_segment() {
    auto reader = tensorpool::StatisticsReader::attach(static_cast<std::uint64_t>(getpid()));
    (void)reader.snapshot();
    (void)reader.entries_since();
}

// Found in every mode.
void free_twice() {
    constexpr std::size_t bytes = 1 << 20;
    void* const p = take(bytes);
    give(p, bytes);
    give(p, bytes);
}
// Found by the handler of a fault, which runs on the same stack.
void write_beyond() {
    const bool is_hardened = has_checks("hardened");
    const std::size_t bytes = is_hardened ? 100'000 : 4'000;
    auto* const p = static_cast<volatile char*>(take(bytes));
    p[bytes + (is_hardened ? 4'096 : 64)] = 1;
}
bool finds_accesses() {
    return has_checks("hardened") || has_checks("sampled");
}

// The first one sets the pool up.
constexpr Calls all_calls[] = {
    {"first call", [] { take_and_give(100); }},
    {"first of a thread", [] { take_and_give(100); }},
    {"growth", take_many},
    {"all sizes", take_all_sizes},
    {"large blocks", take_large},
    {"reallocate", reallocate},
    {"refusal", take_too_much},
    {"arena", use_arena},
    {"scratch", use_scratch},
    {"pool", use_pool_of_its_own},
    {"trim", [] { tensorpool::get_global_memory_pool().trim(); }},
    {"statistics", read_statistics},
    {"snapshot", read_snapshot},
    {"reader", read_segment},
    {"double free", free_twice, true},
    {"access", write_beyond, true},
    {"nothing", [] {}},
};

/// What a thread does, and the address of its first frame. A child's is read by its parent.
struct Run {
    const Calls* calls = nullptr;
    char* begin = nullptr;
};

void* run(void* argument) {
    auto& own = *static_cast<Run*>(argument);
    own.begin = static_cast<char*>(__builtin_frame_address(0));
    own.calls->make();
    return nullptr;
}

/// Memory that children share with their parent.
void* map_shared(std::size_t bytes) {
    void* const begin =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (begin == MAP_FAILED) fail("no memory to share");
    return begin;
}

/// A stack behind a page that may not be accessed.
class Stack {
public:
    explicit Stack(std::size_t bytes) : bytes_(bytes) {
        const auto page = static_cast<std::size_t>(getpagesize());
        auto* const begin = static_cast<char*>(map_shared(bytes + page));
        if (mprotect(begin, page, PROT_NONE) != 0) fail("no guard for a stack");
        begin_ = begin + page;
    }
    char* end() const { return begin_ + bytes_; }
    void fill() { std::memset(begin_, paint, bytes_); }
    /// The first byte that a thread has written.
    char* lowest() const {
        return std::find_if(begin_, end(),
                            [](char c) { return static_cast<unsigned char>(c) != paint; });
    }

    /// Runs a thread on this stack until it ends.
    void run_thread(Run& own) const {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_t thread{};
        if (pthread_attr_setstack(&attributes, begin_, bytes_) != 0 ||
            pthread_create(&thread, &attributes, run, &own) != 0) {
            fail("the system permits no thread with this stack");
        }
        pthread_join(thread, nullptr);
        pthread_attr_destroy(&attributes);
    }
    /// Does the same in a child, and expects that a report ends it.
    void run_misuse(Run& own) const {
        const pid_t child = fork();
        if (child == 0) {
            (void)!std::freopen("/dev/null", "w", stderr);
            run_thread(own);
            _exit(0);
        }
        int status = 0;
        if (child < 0 || waitpid(child, &status, 0) != child) fail("no child");
        if (WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT) return;
        std::fprintf(stderr, "process_lives: %s: status %#x\n", own.calls->name, status);
        fail("a misuse was not reported");
    }

private:
    std::size_t bytes_;
    char* begin_;
};

/// Makes all calls on this stack, and then calls `then` for each.
template <class Then>
void make_all(Stack& stack, Then then) {
    Run& own = *new (map_shared(sizeof(Run))) Run;
    for (const Calls& calls : all_calls) {
        if (calls.make == write_beyond && !finds_accesses()) continue;
        own.calls = &calls;
        stack.fill();
        calls.is_misuse ? stack.run_misuse(own) : stack.run_thread(own);
        then(own);
    }
}

}  // namespace

int run_small_stacks() {
    const std::size_t bytes =
        std::max(small_bytes, static_cast<std::size_t>(sysconf(_SC_THREAD_STACK_MIN)));
    Stack stack(bytes);
    unsigned made = 0;
    make_all(stack, [&](const Run&) { ++made; });
    std::printf("%u kinds of calls, stacks of %zu bytes\n", made, bytes);
    return 0;
}

// A thread's end is measured with it: the C library calls the handlers on the same stack.
int measure_stacks() {
    Stack stack(measured_bytes);
    make_all(stack, [&](const Run& own) {
        if (own.calls == all_calls) {
            std::printf("of the C library %td, ", stack.end() - own.begin);
        }
        std::printf("%s %td, ", own.calls->name, own.begin - stack.lowest());
    });
    std::puts("bytes");
    return 0;
}

}  // namespace processes
