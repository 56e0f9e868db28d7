#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tensorpool::testing {

/// Interprets a string of bytes as the options of a pool and a list of instructions, and executes
/// them on a pool and its model. Every string is a valid program. The idea is that of tcmalloc's
/// central_freelist_fuzz.cc. Throws Mismatch if the pool differs from the model. `planted_fault` is
/// a name as in planted_faults.hpp. `planted_fault` as in planted_faults.hpp.
void run_instructions(std::span<const std::uint8_t> bytes, std::string_view planted_fault = "");

/// Returns a random program of `bytes` bytes, which depends on the seed only.
std::vector<std::uint8_t> random_instructions(std::uint64_t seed, std::size_t bytes);

}  // namespace tensorpool::testing
