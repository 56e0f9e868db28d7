#pragma once

/// @file
/// What is to be laid out, or was.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/memory_plan.hpp>

namespace tensorpool::command::planning {

struct Buffers {
    std::vector<TensorLifetime> lifetimes;
    std::vector<std::string> ids;        ///< one for each: any text
    std::vector<std::uint64_t> offsets;  ///< one for each; empty: none are told
    /// What the file says that the plan needs.
    std::optional<std::uint64_t> peak_bytes;
    std::string clock = "time";  ///< what lifetimes count
    std::string origin;          ///< what of the file this is, for people; "": all of it
};

/// The most bytes alive at once: no plan needs less.
std::uint64_t lower_bound_of(const std::vector<TensorLifetime>& lifetimes);

/// The highest end of a buffer.
std::uint64_t peak_of(const std::vector<TensorLifetime>& lifetimes,
                      const std::vector<std::uint64_t>& offsets);

}  // namespace tensorpool::command::planning
