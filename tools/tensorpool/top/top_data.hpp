#pragma once

/// @file
/// What `top` shows, and its memory of what it saw.

#include <optional>
#include <string>
#include <vector>

#include <tensorpool/process_snapshot.hpp>
#include <tensorpool/statistics_reader.hpp>
#include <tensorpool/timeline.hpp>

#include "top/highest.hpp"

namespace tensorpool::command {

/// Two looks at a process.
struct WatchedProcess {
    ObservedProcess process;
    std::optional<ProcessSnapshot> before;
    std::optional<ProcessSnapshot> now;  ///< nothing where it cannot be read
    bool ended = false;                  ///< then these are its last figures
};

struct TopData {
    std::vector<WatchedProcess> processes;  ///< that run
    std::optional<WatchedProcess> chosen;
    std::vector<TimelineEntry> entries;  ///< of the chosen process, oldest first
    std::string awaited;                 ///< --name, for which another process is waited for; or ""
    Highest highest;
};

// Keys of `highest`.
std::string process_key(std::uint64_t process);
std::string pool_key(std::uint64_t pool);
std::string bucket_key(std::uint64_t pool, unsigned bucket);
std::string arena_key(std::uint64_t arena);
std::string device_key(std::uint64_t device);
std::string thread_key(std::uint64_t thread, std::uint64_t pool);

/// Takes a new look at a process: the last becomes the one before, and the highest rise.
void take_look(WatchedProcess& watched, ProcessSnapshot snapshot, Highest& highest);

}  // namespace tensorpool::command
