#pragma once

#include <cstdint>

#include "platform/unwind/loaded_tables.hpp"
#include "platform/unwind/machine.hpp"

namespace tensorpool::platform::unwind {

/// How a function's caller is found while the function is at one of its instructions.
struct FrameRules {
    enum class Rule : std::uint8_t {
        unchanged,
        undefined,
        at_offset,      // in memory, from the end of the frame
        is_offset,      // the end of the frame plus the number
        in_register,    // the number's
        at_expression,  // in memory; the number is that of the expression's first byte
        is_expression,
    };

    // Numbers of bytes count from here.
    const unsigned char* base;
    const unsigned char* end;
    // The end of the frame is a register plus an offset, or an expression where there is one.
    const unsigned char* frame_expression;
    std::int32_t frame_offset;
    std::uint8_t frame_register;
    std::uint32_t changed;  // a bit for each register whose rule is not `unchanged`
    Rule rules[register_count];
    std::int32_t numbers[register_count];

    /// Returns the expression at the number of its first byte.
    TableBytes expression_at(const unsigned char* at) const noexcept;
};

/// Finds the rules at an address of the function. Returns false if the description has
/// instructions that are unknown or not valid.
bool find_rules(const Description& function, std::uintptr_t address, FrameRules& to) noexcept;

}  // namespace tensorpool::platform::unwind
