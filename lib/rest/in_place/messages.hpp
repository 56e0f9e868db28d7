#pragma once

#include <cstdint>
#include <string>

#include "rest/in_place/frozen_block.hpp"

namespace tensorpool::stashing {

/// Returns the beginning of a message about a block: the call, the block's name, if it has one, and
/// its address.
std::string block_message(const char* call, const char* name, const void* block);
/// Returns that the system refused to freeze a block. `is_whole`: it is as before; otherwise it
/// stays frozen.
std::string refused_message(const FrozenBlock::Settings& settings, bool is_whole);
/// Returns why `thaw` failed.
std::string thaw_message(const FrozenBlock& block, std::uint32_t piece, Done done);
/// Returns what an attempt to bring a piece back found.
const char* reason_of(Done done) noexcept;

}  // namespace tensorpool::stashing
