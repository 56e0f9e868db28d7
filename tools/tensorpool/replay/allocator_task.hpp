#pragma once

/// @file
/// The process in which an allocator replays: this program, started again with a special first
/// argument and with the allocator's library in place of `malloc`. It performs a plan with its
/// threads, and measures what they use.

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <time.h>

#include <cstdio>

#include <tensorpool/memory_pool.hpp>

#include "replay/plan.hpp"

namespace tensorpool::command::replay {

struct Spent {
    std::uint64_t elapsed_ns = 0;
    std::uint64_t user_ns = 0;
    std::uint64_t system_ns = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t major_faults = 0;
};

enum class Calls : std::uint8_t { floor, plan, pool, malloc };

/// The task of an allocator's process. Its command line is `argument`, then the members as numbers.
struct ReplayTask {
    static constexpr const char* argument = "replay-as-allocator";
    Calls calls = Calls::malloc;
    Touch touch = Touch::first;
    int answer = -1;  // file descriptor for the answer
    int plan = -1;    // file descriptor of the plan; -1: only identify the allocator
};

/// The measurements that an allocator's process writes as its answer.
struct ReplayAnswer {
    std::uint64_t elapsed_ns;
    std::uint64_t user_ns;
    std::uint64_t system_ns;
    std::uint64_t minor_faults;
    std::uint64_t major_faults;
    std::uint64_t own_bytes;   // resident before the first allocation: the replay's own memory
    std::uint64_t peak_bytes;  // maximum resident bytes from then on, including `own_bytes`
    std::uint64_t allocations;
    std::uint64_t deallocations;
    std::uint64_t resizes;
    std::uint64_t never_decays;  // 1: jemalloc's options for keeping freed memory are in effect
    char malloc_file[128];       // the file that `malloc` of this process comes from
    char problem[256];           // why there are no measurements; "" if there are
};

// The calls that each kind of allocator makes for a step. A result of nullptr means that the
// request failed. `keeps_apart`: blocks that are alive at the same time never share bytes.

/// The process's global pool, as NumPy, PyTorch and the interposer use it. Frees without a size,
/// because `free` has none either.
struct GlobalPoolCalls {
    static constexpr bool keeps_apart = true;
    static void* allocate(const Step& step, std::uint64_t) noexcept {
        MemoryPool& pool = get_global_memory_pool();
        if (step.alignment_log2() > Step::plain_alignment_log2) {
            return pool.try_allocate(step.bytes(), std::size_t{1} << step.alignment_log2());
        }
        try {
            return pool.allocate(step.bytes());
        } catch (const AllocationError&) {
            return nullptr;
        }
    }
    static void deallocate(void* block) noexcept { get_global_memory_pool().deallocate(block); }
    static void* resize(void* block, std::uint64_t old_bytes, const Step& step,
                        std::uint64_t) noexcept {
        try {
            return get_global_memory_pool().reallocate(block, old_bytes, step.bytes());
        } catch (const AllocationError&) {
            return nullptr;
        }
    }
};

/// The allocator that serves `malloc` in this process.
struct MallocCalls {
    static constexpr bool keeps_apart = true;
    static void* allocate(const Step& step, std::uint64_t) noexcept {
        if (step.alignment_log2() <= Step::plain_alignment_log2) return std::malloc(step.bytes());
        void* block = nullptr;
        const std::size_t alignment = std::size_t{1} << step.alignment_log2();
        return posix_memalign(&block, alignment, step.bytes()) == 0 ? block : nullptr;
    }
    static void deallocate(void* block) noexcept { std::free(block); }
    static void* resize(void* block, std::uint64_t, const Step& step, std::uint64_t) noexcept {
        return std::realloc(block, step.bytes());
    }
};

/// One mapping in which each block has the offset of a plan that was made before the replay: shows
/// the cost of the replay without any allocator. If threads make their calls in another order than
/// recorded, blocks may overlap.
struct FloorCalls {
    static constexpr bool keeps_apart = false;
    static inline std::byte* base = nullptr;

    static void* allocate(const Step&, std::uint64_t offset) noexcept { return base + offset; }
    static void deallocate(void*) noexcept {}
    static void* resize(void*, std::uint64_t, const Step&, std::uint64_t offset) noexcept {
        return base + offset;
    }
};

/// The same, but a resized block keeps its content, as a program that uses the plan needs it.
struct PlannedCalls : FloorCalls {
    /// The old range and the new one may share bytes, so the content is moved by memmove.
    static void* resize(void* block, std::uint64_t old_bytes, const Step& step,
                        std::uint64_t offset) noexcept {
        if (block == base + offset) return block;
        const std::uint64_t kept = old_bytes < step.bytes() ? old_bytes : step.bytes();
        return std::memmove(base + offset, block, kept);
    }
};

inline std::uint64_t nanoseconds(const timeval& time) noexcept {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_usec) * 1'000;
}

/// Returns a value of /proc/self/status, converted from KiB to bytes; 0 if it is missing. Does not
/// allocate.
inline std::uint64_t status_value(const char* name) noexcept {
    char text[8192];
    const Descriptor file(open("/proc/self/status", O_RDONLY | O_CLOEXEC));
    const ssize_t count = read(file.number(), text, sizeof text - 1);
    text[std::max<ssize_t>(count, 0)] = '\0';
    const char* const at = std::strstr(text, name);
    return at == nullptr ? 0 : std::strtoull(at + std::strlen(name), nullptr, 10) * 1024;
}

inline constexpr int argument_count = 6;

/// Returns whether `malloc` is a jemalloc that is configured to keep freed memory forever.
inline bool never_decays() noexcept {
    using Mallctl = int (*)(const char*, void*, std::size_t*, void*, std::size_t);
    const auto mallctl = reinterpret_cast<Mallctl>(dlsym(RTLD_DEFAULT, "mallctl"));
    if (mallctl == nullptr) return false;
    for (const char* const option : {"opt.dirty_decay_ms", "opt.muzzy_decay_ms"}) {
        ssize_t milliseconds = 0;
        std::size_t bytes = sizeof milliseconds;
        if (mallctl(option, &milliseconds, &bytes, nullptr, 0) != 0 || milliseconds != -1) {
            return false;
        }
    }
    return true;
}

/// Stores the name, without its folder, of the program or library that has `address`. The name is
/// cut to the size of `name`; it is "" if there is none.
inline void file_of(const void* address, std::span<char> name) noexcept {
    name[0] = '\0';
    Dl_info info = {};
    if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return;
    const char* const slash = std::strrchr(info.dli_fname, '/');
    std::snprintf(name.data(), name.size(), "%s", slash == nullptr ? info.dli_fname : slash + 1);
}

inline void identify_malloc(ReplayAnswer& answer) noexcept {
    file_of(dlsym(RTLD_DEFAULT, "malloc"), answer.malloc_file);
    answer.never_decays = never_decays();
}

/// Sets the pool up, so that it reads its variables now and reports invalid ones on stderr.
inline void set_up_pool() noexcept {
    MemoryPool& pool = get_global_memory_pool();
    pool.deallocate(pool.try_allocate(1));
}

/// Enough for any allocator's calls; only what is used takes memory.
inline constexpr std::size_t stack_bytes = std::size_t{1} << 20;

/// The answer of this process. If a thread fails, it writes the answer and ends the process.
inline int answer_descriptor = -1;
inline ReplayAnswer* present_answer = nullptr;

/// Writes the answer and ends the process.
[[noreturn]] inline void answer_and_end(int descriptor, const ReplayAnswer& answer) noexcept {
    if (::write(descriptor, &answer, sizeof answer) == sizeof answer) _exit(0);
    dprintf(STDERR_FILENO, "tensorpool: %s\n", answer.problem);
    _exit(1);
}

[[noreturn]] inline void fail(const char* format, unsigned long long bytes,
                              const void* block) noexcept {
    ReplayAnswer& answer = *present_answer;
    std::snprintf(answer.problem, sizeof answer.problem, format, bytes, block);
    answer_and_end(answer_descriptor, answer);
}

inline constexpr PlayFailures failures = {
    [](std::uint64_t bytes) { fail("it refused a request of %llu bytes", bytes, nullptr); },
    [](const void* block, std::uint64_t bytes) {
        fail(
            "the content of the block of %llu bytes at %p has changed: another block overlaps it, "
            "or a resize lost it",
            bytes, block);
    }};

/// Maps zeroed items with all pages present. Ends the process with an error if there is no memory.
template <class Item>
std::span<Item> map_items(std::uint64_t count) noexcept {
    if (count == 0) return {};
    void* const mapped = mmap(nullptr, count * sizeof(Item), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (mapped == MAP_FAILED)
        fail("there is no memory for a table of %llu bytes", count * sizeof(Item), nullptr);
    return {static_cast<Item*>(mapped), static_cast<std::size_t>(count)};
}

/// Returns the totals of all threads. Only differences between two calls are meaningful.
inline Spent spent_so_far() noexcept {
    rusage usage = {};
    getrusage(RUSAGE_SELF, &usage);
    timespec now = {};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return {static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
                static_cast<std::uint64_t>(now.tv_nsec),
            nanoseconds(usage.ru_utime), nanoseconds(usage.ru_stime),
            static_cast<std::uint64_t>(usage.ru_minflt),
            static_cast<std::uint64_t>(usage.ru_majflt)};
}

/// Resets the peak of resident memory to the current value. Returns false if the system refuses.
inline bool reset_peak() noexcept {
    const Descriptor file(open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC));
    return ::write(file.number(), "5", 1) == 1;
}

/// Returns the resident bytes from /proc/self/status, exact to a few hundred KiB; 0 if it cannot be
/// read.
inline std::uint64_t resident_bytes() noexcept {
    return status_value("VmRSS:");
}

/// Returns the maximum resident bytes from /proc/self/status, exact to a few hundred KiB; 0 if it
/// cannot be read.
inline std::uint64_t peak_bytes() noexcept {
    return status_value("VmHWM:");
}

/// Reserves address space for blocks with known offsets.
inline std::byte* map_offsets(std::uint64_t bytes) noexcept {
    void* const mapped = mmap(nullptr, bytes + 1, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) fail("there is no address space of %llu bytes", bytes, nullptr);
    return static_cast<std::byte*>(mapped);
}

template <class Calls>
class Performance {
public:
    Performance(const PlanView& plan, Touch touch) noexcept
        : stage_{plan,
                 map_items<Slot>(plan.slots),
                 map_items<Signal>(plan.slots),
                 map_items<std::atomic<std::uint32_t>>(plan.stages.size()),
                 map_items<Signal>(plan.stages.size()),
                 touch},
          players_(map_items<Player>(plan.threads.size())) {
        for (std::size_t i = 0; i < plan.stages.size(); ++i) {
            stage_.still_inside[i].store(plan.stages[i], std::memory_order_relaxed);
        }
    }

    void perform(ReplayAnswer& answer) noexcept {
        start_threads();
        if (!reset_peak()) fail("/proc/self/clear_refs refuses to reset the peak", 0, nullptr);
        answer.own_bytes = resident_bytes();
        players_[0].play();
        const Spent before = spent_so_far();
        begin_.give();
        play_and_join();
        const Spent after = spent_so_far();
        answer.peak_bytes = peak_bytes();
        answer.elapsed_ns = after.elapsed_ns - before.elapsed_ns;
        answer.user_ns = after.user_ns - before.user_ns;
        answer.system_ns = after.system_ns - before.system_ns;
        answer.minor_faults = after.minor_faults - before.minor_faults;
        answer.major_faults = after.major_faults - before.major_faults;
        add_counts(answer);
    }

private:
    struct Player {
        Performance* performance;
        const PlannedThread* planned;
        pthread_t thread;
        PlayCounts counts;

        void play() noexcept { counts = Play<Calls>(performance->stage_, failures).play(*planned); }
    };

    /// Starts all threads except the first, which makes the blocks from before the recording, and
    /// the main thread; this thread plays both.
    void start_threads() noexcept {
        pthread_attr_t attributes;
        pthread_attr_init(&attributes);
        pthread_attr_setstacksize(&attributes, stack_bytes);
        unsigned started = 0;
        for (std::size_t i = 0; i < players_.size(); ++i) {
            players_[i].performance = this;
            players_[i].planned = &stage_.plan.threads[i];
            if (i == 0 || players_[i].planned->is_main != 0) continue;
            if (pthread_create(&players_[i].thread, &attributes, wait_and_play, &players_[i]) !=
                0) {
                fail("the system refuses thread %llu", i, nullptr);
            }
            ++started;
        }
        while (waiting_.load(std::memory_order_acquire) < started) usleep(100);
    }
    static void* wait_and_play(void* argument) noexcept {
        Player& player = *static_cast<Player*>(argument);
        player.performance->waiting_.fetch_add(1, std::memory_order_release);
        player.performance->begin_.wait();
        player.play();
        return nullptr;
    }
    void play_and_join() noexcept {
        for (Player& player : players_.subspan(1)) {
            if (player.planned->is_main != 0) player.play();
        }
        for (Player& player : players_.subspan(1)) {
            if (player.planned->is_main == 0) pthread_join(player.thread, nullptr);
        }
    }
    void add_counts(ReplayAnswer& answer) const noexcept {
        for (const Player& player : players_) {
            answer.allocations += player.counts.allocations;
            answer.deallocations += player.counts.deallocations;
            answer.resizes += player.counts.resizes;
        }
    }

    Stage stage_;
    std::span<Player> players_;
    Signal begin_;
    std::atomic<unsigned> waiting_ = 0;
};

/// Plays the plan on as many threads as it has, and fills in the measurements or the problem.
/// Blocks that were never freed are left. During the measurement it allocates only by the plan's
/// steps; before it, starting threads allocates too.
inline void perform(const ReplayTask& task, const PlanView& plan, ReplayAnswer& answer) noexcept {
    answer_descriptor = task.answer;
    present_answer = &answer;
    switch (task.calls) {
        case Calls::floor:
            FloorCalls::base = map_offsets(plan.offsets_bytes);
            return Performance<FloorCalls>(plan, task.touch).perform(answer);
        case Calls::plan:
            PlannedCalls::base = map_offsets(plan.offsets_bytes);
            return Performance<PlannedCalls>(plan, task.touch).perform(answer);
        case Calls::pool:
            return Performance<GlobalPoolCalls>(plan, task.touch).perform(answer);
        case Calls::malloc:
            return Performance<MallocCalls>(plan, task.touch).perform(answer);
    }
}

inline bool is_allocator_process(int count, const char* const* arguments) noexcept {
    return count == argument_count && std::strcmp(arguments[1], ReplayTask::argument) == 0;
}

/// Does the task of an allocator's process and returns the program's exit status. Before the call,
/// the program should have allocated no memory that it can avoid.
inline int run_allocator_process(int, const char* const* arguments) noexcept {
    const ReplayTask task = {
        static_cast<Calls>(std::atoi(arguments[2])),
        static_cast<Touch>(std::atoi(arguments[3])),
        std::atoi(arguments[4]),
        std::atoi(arguments[5]),
    };
    static ReplayAnswer answer = {};
    identify_malloc(answer);
    PlanView plan;
    if (task.plan < 0) {
        if (task.calls == Calls::pool) set_up_pool();
    } else if (map_plan(task.plan, plan)) {
        perform(task, plan, answer);
    } else {
        std::snprintf(answer.problem, sizeof answer.problem, "the plan cannot be mapped");
    }
    answer_and_end(task.answer, answer);
}

}  // namespace tensorpool::command::replay
