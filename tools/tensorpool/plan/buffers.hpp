#pragma once

/// @file
/// The buffers of a file: lifetimes and, if present, offsets.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <tensorpool/memory_plan.hpp>

namespace tensorpool::command::planning {

struct Buffers {
    std::vector<TensorLifetime> lifetimes;
    std::vector<std::string> ids;             ///< one for each buffer: any text
    std::vector<std::uint64_t> offsets;       ///< one for each buffer; empty if the file has none
    std::optional<std::uint64_t> peak_bytes;  ///< the size of the plan according to the file
    std::string clock = "time";               ///< the unit of time, for people
    std::string origin;  ///< the part of the file, for people; "" if it is the whole file
};

/// Returns the maximum bytes alive at once, which no plan can go below.
std::uint64_t lower_bound_of(const std::vector<TensorLifetime>& lifetimes);

/// Returns the highest end of a buffer.
std::uint64_t peak_of(const std::vector<TensorLifetime>& lifetimes,
                      const std::vector<std::uint64_t>& offsets);

}  // namespace tensorpool::command::planning
