#include "platform/unwind/frame.hpp"

#include <limits>

namespace tensorpool::platform::unwind {
namespace {

using Rule = FrameRules::Rule;

// Those that compilers and assemblers write on x86-64.
enum Instruction : std::uint8_t {
    nop = 0x00,
    set_loc,
    advance_loc1,
    advance_loc2,
    advance_loc4,
    offset_extended,
    restore_extended,
    undefined,
    same_value,
    register_,
    remember_state,
    restore_state,
    def_cfa,
    def_cfa_register,
    def_cfa_offset,
    def_cfa_expression,
    expression,
    offset_extended_sf,
    def_cfa_offset_sf = 0x13,
    val_expression = 0x16,
    gnu_args_size = 0x2E,
    // With an operand in the lower six bits.
    advance_loc = 0x40,
    offset = 0x80,
    restore = 0xC0,
};

/// Executes the instructions of a description up to an address.
class Execution {
public:
    Execution(const Description& function, std::uintptr_t address, FrameRules& rules) noexcept
        : function_(function), address_(address), reached_(function.begin), rules_(rules) {}

    bool run() noexcept {
        if (!execute(function_.group.instructions)) return false;
        initial_ = rules_;
        return execute(function_.instructions);
    }

private:
    // Compilers nest no states.
    static constexpr std::size_t max_states = 2;

    bool execute(TableBytes bytes) noexcept {
        while (!bytes.is_empty() && reached_ <= address_) {
            if (!execute_one(bytes) || bytes.is_bad()) return false;
        }
        return true;
    }

    bool execute_one(TableBytes& bytes) noexcept {
        const auto instruction = bytes.take<std::uint8_t>();
        const std::uint8_t operand = instruction & 0x3FU;
        switch (instruction & 0xC0U) {
            case advance_loc:
                return advance(operand);
            case offset:
                return set(operand, Rule::at_offset, factored(bytes.take_uleb()));
            case restore:
                return reset(operand);
            default:
                return execute_extended(instruction, bytes);
        }
    }

    bool execute_extended(std::uint8_t instruction, TableBytes& bytes) noexcept {
        switch (instruction) {
            case nop:
                return true;
            case advance_loc1:
                return advance(bytes.take<std::uint8_t>());
            case advance_loc2:
                return advance(bytes.take<std::uint16_t>());
            case advance_loc4:
                return advance(bytes.take<std::uint32_t>());
            case gnu_args_size:
                bytes.take_uleb();
                return true;
            case remember_state:
                return remember();
            case restore_state:
                return recall();
            case def_cfa:
                return define_register(bytes.take_uleb()) &&
                       define_offset(static_cast<std::int64_t>(bytes.take_uleb()));
            case def_cfa_register:
                return define_register(bytes.take_uleb());
            case def_cfa_offset:
                return define_offset(static_cast<std::int64_t>(bytes.take_uleb()));
            case def_cfa_offset_sf:
                return define_offset(factored(bytes.take_sleb()));
            case def_cfa_expression:
                rules_.frame_expression = bytes.at();
                bytes.skip(bytes.take_uleb());
                return true;
            default:
                return execute_rule(instruction, bytes.take_uleb(), bytes);
        }
    }

    bool execute_rule(std::uint8_t instruction, std::uint64_t number, TableBytes& bytes) noexcept {
        switch (instruction) {
            case offset_extended:
                return set(number, Rule::at_offset, factored(bytes.take_uleb()));
            case offset_extended_sf:
                return set(number, Rule::at_offset, factored(bytes.take_sleb()));
            case restore_extended:
                return reset(number);
            case undefined:
                return set(number, Rule::undefined, 0);
            case same_value:
                return set(number, Rule::unchanged, 0);
            case register_:
                return set(number, Rule::in_register, static_cast<std::int64_t>(bytes.take_uleb()));
            case expression:
                return set_expression(number, Rule::at_expression, bytes);
            case val_expression:
                return set_expression(number, Rule::is_expression, bytes);
            default:
                return false;
        }
    }

    bool advance(std::uint64_t units) noexcept {
        reached_ += units * function_.group.code_unit;
        return true;
    }
    std::int64_t factored(std::uint64_t number) const noexcept {
        return static_cast<std::int64_t>(number *
                                         static_cast<std::uint64_t>(function_.group.data_unit));
    }
    std::int64_t factored(std::int64_t number) const noexcept {
        return factored(static_cast<std::uint64_t>(number));
    }

    static bool fits(std::int64_t number) noexcept {
        using Limits = std::numeric_limits<std::int32_t>;
        return number >= Limits::min() && number <= Limits::max();
    }

    // Rules of other registers, such as those of vectors, change no caller's address.
    bool set(std::uint64_t number, Rule rule, std::int64_t operand) noexcept {
        if (!fits(operand)) return false;
        if (number >= register_count) return true;
        const std::uint32_t bit = std::uint32_t{1} << number;
        rules_.changed = rule == Rule::unchanged ? rules_.changed & ~bit : rules_.changed | bit;
        rules_.rules[number] = rule;
        rules_.numbers[number] = static_cast<std::int32_t>(operand);
        return true;
    }
    bool set_expression(std::uint64_t number, Rule rule, TableBytes& bytes) noexcept {
        const std::ptrdiff_t first = bytes.at() - rules_.base;
        bytes.skip(bytes.take_uleb());
        return set(number, rule, first);
    }
    bool reset(std::uint64_t number) noexcept {
        if (number >= register_count) return true;
        return set(number, initial_.rules[number], initial_.numbers[number]);
    }

    bool define_register(std::uint64_t number) noexcept {
        rules_.frame_register = static_cast<std::uint8_t>(number);
        rules_.frame_expression = nullptr;
        return number < register_count;
    }
    bool define_offset(std::int64_t bytes) noexcept {
        rules_.frame_offset = static_cast<std::int32_t>(bytes);
        return fits(bytes);
    }

    bool remember() noexcept {
        if (states_ == max_states) return false;
        remembered_[states_++] = rules_;
        return true;
    }
    bool recall() noexcept {
        if (states_ == 0) return false;
        rules_ = remembered_[--states_];
        return true;
    }

    const Description& function_;
    std::uintptr_t address_;
    std::uintptr_t reached_;
    FrameRules& rules_;
    FrameRules initial_;
    FrameRules remembered_[max_states];
    std::size_t states_ = 0;
};

}  // namespace

TableBytes FrameRules::expression_at(const unsigned char* at) const noexcept {
    TableBytes bytes(at, end);
    const std::uint64_t length = bytes.take_uleb();
    const unsigned char* const begin = bytes.skip(length);
    return begin == nullptr ? TableBytes(nullptr, nullptr) : TableBytes(begin, begin + length);
}

bool find_rules(const Description& function, std::uintptr_t address, FrameRules& to) noexcept {
    to = {};
    to.base = function.instructions.at();
    // Expressions of the group lie before those of the function, or behind them.
    to.end = function.instructions.end() > function.group.instructions.end()
                 ? function.instructions.end()
                 : function.group.instructions.end();
    return Execution(function, address, to).run();
}

}  // namespace tensorpool::platform::unwind
