#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/stacks/stack_memory.hpp"
#include "platform/unwind/frame_rules.hpp"
#include "platform/unwind/loaded_tables.hpp"
#include "platform/unwind/machine.hpp"

namespace tensorpool::platform::unwind {

/// A call of the calling thread's stack. Begins as the innermost one and steps outwards.
class Frame {
public:
    /// `registers` are those at the instruction `address` of a function that has not returned.
    Frame(const Registers& registers, std::uintptr_t address) noexcept
        : registers_(registers),
          memory_(registers.value[stack_pointer]),
          address_(address),
          end_(registers.value[stack_pointer]) {
        code_ = tables_.find(instruction(), function_);
    }

    /// Returns the address to which the call's callee returns, or that a signal interrupted.
    std::uintptr_t address() const noexcept { return address_; }
    /// Returns where that address lies on the stack; nullptr if a signal interrupted the call.
    const std::uintptr_t* slot() const noexcept { return slot_; }

    /// Steps to the caller. Returns false if there is none, or if its address is not known code.
    /// Signal frames can form a cycle, so callers bound the number of steps.
    bool step() noexcept;

private:
    /// The place of the instruction of which the call is at, for a search: a call is before the
    /// address to which it returns, and may be the last instruction of its function.
    std::uintptr_t instruction() const noexcept {
        return is_interrupted_ ? address_ : address_ - 1;
    }
    bool find_end(const FrameRules& rules, std::uintptr_t& end) noexcept;
    bool restore(const FrameRules& rules, std::uintptr_t end, std::size_t number,
                 std::uintptr_t& to) noexcept;

    Registers registers_;
    StackMemory memory_;
    LoadedTables tables_;
    Description function_;
    LoadedTables::Code code_ = LoadedTables::Code::unknown;
    std::uintptr_t address_;
    std::uintptr_t end_;  // of the callee's frame
    const std::uintptr_t* slot_ = nullptr;
    bool is_interrupted_ = true;
};

}  // namespace tensorpool::platform::unwind
