#pragma once

/// @file
/// The allocators that can replay a recording, each in a process of its own.

#include "replay/allocator_task.hpp"

namespace tensorpool::command::replay {

using Variables = std::vector<std::pair<std::string, std::string>>;

struct ReplayAllocator {
    std::string name;
    Calls calls = Calls::malloc;
    std::string library;        ///< prefix of the name of the file with `malloc`; "": any file
    bool preload = false;       ///< `library` has to be loaded by LD_PRELOAD
    std::string package;        ///< the Debian package with the library
    Variables variables;        ///< variables of its environment
    bool never_decays = false;  ///< jemalloc has to report that it keeps freed memory
};

/// Returns the allocators of these names, in the same order. `pool:NAME=VALUE:…` is the pool with
/// options of its own; `options` apply to pools without. Throws CommandError for an unknown name,
/// with a list of the known ones.
std::vector<ReplayAllocator> allocators_of(std::span<const std::string> names,
                                           std::span<const std::string> options);

/// Returns the names of all allocators, separated by commas.
std::string allocator_names();
/// Returns the names of the pool's options, separated by commas.
std::string option_names();

/// Returns the environment variables for options written as NAME=VALUE. Throws CommandError for an
/// unknown name.
Variables pool_variables(std::span<const std::string> options);

/// Runs this program again with the allocator and waits for its end. `plan` is a file descriptor.
/// Variables that tune allocators are not passed on, except those of `allocator`. Throws
/// CommandError if the process ends without measurements.
ReplayAnswer run_allocator(const ReplayAllocator& allocator, Touch touch, int plan);

/// Returns why an allocator is not available, with a hint for the user; "" if it is available.
/// Throws CommandError if the pool rejects its options.
std::string why_unavailable(const ReplayAllocator& allocator);

}  // namespace tensorpool::command::replay
