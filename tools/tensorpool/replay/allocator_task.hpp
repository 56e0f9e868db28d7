#pragma once

/// @file
/// The process in which an allocator replays: this program, started again with a special first
/// argument and with the allocator's library in place of `malloc`.

#include <cstdint>

#include "replay/touch.hpp"

namespace tensorpool::command::replay {

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

/// Returns whether the arguments are those of an allocator's process.
bool is_allocator_process(int count, const char* const* arguments) noexcept;
/// Does the task of an allocator's process and returns the program's exit status. Before the call,
/// the program should have allocated no memory that it can avoid.
int run_allocator_process(int count, const char* const* arguments) noexcept;

}  // namespace tensorpool::command::replay
