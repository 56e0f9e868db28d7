#pragma once

#include <dlfcn.h>

#include "platform/stacks/stack_memory.hpp"
#include "platform/unwind/table_bytes.hpp"

namespace tensorpool::platform::unwind {

/// What the table says about a group of functions (Linux Standard Base, Exception Frames).
struct Group {
    TableBytes instructions{nullptr, nullptr};  // that begin those of each function
    std::uint64_t code_unit = 1;
    std::int64_t data_unit = 1;
    std::uint8_t address_encoding = 0;
    std::uint8_t return_register = 0;
    bool has_own_data = false;
    bool is_signal_frame = false;  // a signal handler returns to it
};

/// What the table says about one function.
struct Description {
    Group group;
    TableBytes instructions{nullptr, nullptr};
    std::uintptr_t begin = 0;  // of the function
};

/// Reads the unwind tables of the loaded files. Takes no lock: the loader keeps its list so that
/// signal handlers can read it. The tables are those of the file at the time of the call; a file
/// that is unloaded while a stack contains its code is the program's error.
class LoadedTables {
public:
    enum class Code : std::uint8_t {
        unknown,  ///< no file contains the address, or it is not code
        bare,     ///< code without a description
        described,
    };

    /// Finds the function that contains `address`.
    Code find(std::uintptr_t address, Description& to) noexcept;

private:
    bool find_file(std::uintptr_t address) noexcept;
    void find_bounds() noexcept;
    TableBytes headers_of_file() const noexcept;
    bool is_code(std::uintptr_t address) const noexcept;
    const unsigned char* find_entry(std::uintptr_t address) const noexcept;
    bool describe(const unsigned char* entry, std::uintptr_t address, Description& to) noexcept;
    TableBytes bytes_from(const unsigned char* at) const noexcept {
        return at < begin_ || at > end_ ? TableBytes(nullptr, nullptr) : TableBytes(at, end_);
    }

    // The last ones that were found.
    dl_find_object file_{};
    const unsigned char* begin_ = nullptr;  // of what contains the tables, as is the next one
    const unsigned char* end_ = nullptr;
    const unsigned char* group_begin_ = nullptr;
    Group group_;
};

/// How a function's caller is found while the function is at one of its instructions.
struct FrameRules {
    enum class Rule : std::uint8_t {
        unchanged,
        undefined,
        at_offset,      // in memory, from the end of the frame
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

/// Evaluates a DWARF expression (version 5, chapter 2.5) with `first` on its stack. Returns false
/// for operations that no unwind table needs, such as jumps, and for words that cannot be read.
bool evaluate(TableBytes expression, const Registers& registers, std::uintptr_t first,
              StackMemory& memory, std::uintptr_t& result) noexcept;

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
