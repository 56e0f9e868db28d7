#pragma once

#include <cstdint>

#include "platform/stacks/stack_memory.hpp"
#include "platform/unwind/machine.hpp"
#include "platform/unwind/table_bytes.hpp"

namespace tensorpool::platform::unwind {

/// Evaluates a DWARF expression (version 5, chapter 2.5) with `first` on its stack. Returns false
/// for operations that no unwind table needs, such as jumps, and for words that cannot be read.
bool evaluate(TableBytes expression, const Registers& registers, std::uintptr_t first,
              StackMemory& memory, std::uintptr_t& result) noexcept;

}  // namespace tensorpool::platform::unwind
