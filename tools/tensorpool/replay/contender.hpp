#pragma once

/// @file
/// The process of a contender: this program again, told by its first word, with the contender's
/// library in the place of `malloc`.

#include <cstdint>

#include "replay/touch.hpp"

namespace tensorpool::command::replay {

enum class Calls : std::uint8_t { floor, plan, pool, malloc };

/// What a contender's process is told by its command line: `word`, then these as numbers.
struct ContenderTask {
    static constexpr const char* word = "replay-as-contender";
    Calls calls = Calls::malloc;
    Touch touch = Touch::first;
    int answer = -1;  // descriptors
    int plan = -1;    // none: it only says what it is
};

/// What it writes as its answer.
struct ContenderAnswer {
    std::uint64_t elapsed_ns;
    std::uint64_t user_ns;
    std::uint64_t system_ns;
    std::uint64_t minor_faults;
    std::uint64_t major_faults;
    std::uint64_t own_bytes;   // resident before the first block was made: the replay's own
    std::uint64_t peak_bytes;  // the most that was resident from then on, `own_bytes` included
    std::uint64_t allocations;
    std::uint64_t deallocations;
    std::uint64_t resizes;
    std::uint64_t never_decays;  // 1: jemalloc's options for that are in force
    char malloc_file[128];       // where this process has `malloc` from
    char problem[256];           // why there are no figures; "": there are
};

/// Whether the words are those of a contender.
bool is_contender(int count, const char* const* words) noexcept;
/// Does its task; returns the program's exit status. Before this nothing may have asked for memory
/// that need not.
int contend(int count, const char* const* words) noexcept;

}  // namespace tensorpool::command::replay
