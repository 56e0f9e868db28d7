#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace tensorpool::testing {

/// Takes a string of bytes for the options of a pool and a list of instructions to it, and carries
/// them out on a pool and its model: any string is a program. After the idea of tcmalloc's
/// central_freelist_fuzz.cc. Throws Mismatch where the pool does not do what the model says.
/// `planted_fault` as in planted_faults.hpp.
void run_instructions(std::span<const std::uint8_t> bytes, std::string_view planted_fault = "");

/// A program of so many bytes, the same for the same seed.
std::vector<std::uint8_t> random_instructions(std::uint64_t seed, std::size_t bytes);

}  // namespace tensorpool::testing
