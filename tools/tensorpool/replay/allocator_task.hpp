#pragma once

/// @file
/// The process in which an allocator replays: this program, started again with a special first
/// argument and with the allocator's library in place of `malloc`. It performs a plan with its
/// threads, and measures what they use.

#include <cstdlib>

#include <tensorpool/memory_pool.hpp>

#include "replay/play.hpp"

namespace tensorpool::command::replay {

struct Spent {
    std::uint64_t elapsed_ns = 0;
    std::uint64_t user_ns = 0;
    std::uint64_t system_ns = 0;
    std::uint64_t minor_faults = 0;
    std::uint64_t major_faults = 0;
};

/// Returns the totals of all threads. Only differences between two calls are meaningful.
Spent spent_so_far() noexcept;

/// Resets the peak of resident memory to the current value. Returns false if the system refuses.
bool reset_peak() noexcept;
/// Returns the resident bytes from /proc/self/status, exact to a few hundred KiB; 0 if it cannot be
/// read.
std::uint64_t resident_bytes() noexcept;
/// Returns the maximum resident bytes from /proc/self/status, exact to a few hundred KiB; 0 if it
/// cannot be read.
std::uint64_t peak_bytes() noexcept;

/// Stores the name, without its folder, of the program or library that has `address`. The name is
/// cut to the size of `name`; it is "" if there is none.
void file_of(const void* address, std::span<char> name) noexcept;

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

bool is_allocator_process(int count, const char* const* arguments) noexcept;
/// Does the task of an allocator's process and returns the program's exit status. Before the call,
/// the program should have allocated no memory that it can avoid.
int run_allocator_process(int count, const char* const* arguments) noexcept;

/// Plays the plan on as many threads as it has, and fills in the measurements or the problem.
/// Blocks that were never freed are left. During the measurement it allocates only by the plan's
/// steps; before it, starting threads allocates too.
void perform(const ReplayTask& task, const PlanView& plan, ReplayAnswer& answer) noexcept;

/// Writes the answer and ends the process.
[[noreturn]] void answer_and_end(int descriptor, const ReplayAnswer& answer) noexcept;

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

}  // namespace tensorpool::command::replay
