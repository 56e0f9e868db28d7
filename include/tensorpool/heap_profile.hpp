#pragma once

/// @file
/// The heap profile of a process: which call stacks hold the memory of its pools, by a sample of
/// its allocations. Sizes are bytes.
///
/// Samples are taken only if they are requested: by TENSORPOOL_PROFILE in the environment, by
/// `set_profile_interval`, or from outside (`request_profile_interval`, the command `tensorpool
/// profile`). Then each pool without checks of every call (`Checks::off` and `sampled`) samples on
/// average one allocation in `profile_interval()` bytes, at random distances. An allocation of n
/// bytes is sampled with the probability p = 1 - exp(-n / interval) and counts as 1 / p blocks and
/// n / p bytes, so the expected values are the true ones. Sampling takes at most about 0.5 % of a
/// thread's processor time, and up to five times as much in its first 50 ms. Where it would take
/// more, the thread's interval is raised, and the weights with it.
///
/// What pools count exactly limits the estimates: the sites together have at most the bytes that
/// all pools have in use, at the peak at most those that pools held then, and at most the bytes
/// that were requested in all. Beyond that, the estimates of all sites are reduced in proportion.
///
/// Arenas, blocks that a plan serves, memory of devices, and programs under AddressSanitizer or
/// Valgrind are not sampled.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <tensorpool/export.hpp>

namespace tensorpool {

/// One call of a call stack.
struct ProfileFrame {
    /// The path of the program or library that contains the code; "python:function@file" for a
    /// call of Python; "" if no file contains the code.
    std::string module;
    /// The offset of the call in the file, as its symbols count. For a call of Python the line; 0
    /// if it is unknown. Without a file, the address.
    std::uint64_t offset = 0;
};

/// What the blocks allocated by one call stack hold. All values are estimates from samples.
struct ProfileSite {
    /// The number of spans of time in `lifetimes`.
    static constexpr std::size_t lifetime_count = 16;

    /// Identifies the site in its process.
    std::uint64_t id = 0;
    /// The call stack, innermost call first, as indices of `HeapProfile::frames`. Empty for
    /// allocations whose stacks found no room in the table of sites.
    std::vector<std::uint32_t> stack;
    /// The number of samples taken.
    std::uint64_t samples = 0;
    /// The bytes of the blocks that are in use.
    std::uint64_t live_bytes = 0;
    /// The blocks that are in use.
    double live_blocks = 0;
    /// The bytes of all allocations so far.
    std::uint64_t allocated_bytes = 0;
    /// All allocations so far.
    double allocated_blocks = 0;
    /// The bytes that were in use when the process's use had its peak.
    std::uint64_t peak_bytes = 0;
    /// The blocks that were in use then.
    double peak_blocks = 0;
    /// The freed blocks by lifetime. Element 0 counts those that lived for less than 1 µs, element
    /// i those from 4^(i-1) to 4^i µs, and the last one all that lived longer (4^14 µs are 4.5
    /// minutes).
    std::array<double, lifetime_count> lifetimes = {};
};

/// The heap profile of a process at one moment.
struct HeapProfile {
    /// The number of the process.
    std::uint64_t process = 0;
    /// The process's name, as the system has it; "" if it has none.
    std::string process_name;
    /// The time of the profile in nanoseconds since 1970 UTC.
    std::uint64_t time_unix_ns = 0;
    /// The mean distance between samples in bytes; 0 if none are taken.
    std::uint64_t interval = 0;
    /// The bytes in use at the peak. A peak is kept when use exceeds the kept peak by 1 %, so the
    /// true peak may be 1 % higher. If use is above the kept peak now, this is the peak.
    std::uint64_t peak_bytes = 0;
    /// When that was, in nanoseconds since 1970 UTC; 0 if no sample was taken yet.
    std::uint64_t peak_unix_ns = 0;
    /// Samples that were not taken because there was no room for their records.
    std::uint64_t lost_samples = 0;
    /// The calls of all sites. A call occurs once.
    std::vector<ProfileFrame> frames;
    /// The sites that were sampled.
    std::vector<ProfileSite> sites;
    /// The mean distance between samples that was really used, in bytes: at least `interval` where
    /// samples would have taken too much time. The mean over all samples; 0 if there are none.
    std::uint64_t mean_distance = 0;
};

/// Returns the mean distance in bytes between the sampled allocations of this process; 0 if none
/// are sampled, as by default. TENSORPOOL_PROFILE sets the distance: `on` is 512 KiB; a number of
/// bytes from 1 KiB on, such as 4MiB, is itself; `all` samples every allocation, whatever that
/// takes; and `off` is the default. Any thread may call it.
TENSORPOOL_API std::size_t profile_interval() noexcept;
/// Sets the mean distance in bytes between sampled allocations, at most 1 TiB, or stops sampling
/// with 0. With 1, every allocation is sampled. Each thread uses the value from its next sample on;
/// if none were taken, at most 64 MiB of allocations later. Any thread may call it.
TENSORPOOL_API void set_profile_interval(std::size_t bytes) noexcept;

}  // namespace tensorpool
