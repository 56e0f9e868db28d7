#include "platform/unwind/frame.hpp"

#include <bit>

#include "platform/stacks/program_stack.hpp"

namespace tensorpool::platform::unwind {

bool Frame::find_end(const FrameRules& rules, std::uintptr_t& end) noexcept {
    if (rules.frame_expression != nullptr) {
        return evaluate(rules.expression_at(rules.frame_expression), registers_, 0, memory_, end);
    }
    end = registers_.value[rules.frame_register] + static_cast<std::uintptr_t>(rules.frame_offset);
    return true;
}

bool Frame::restore(const FrameRules& rules, std::uintptr_t end, std::size_t number,
                    std::uintptr_t& to) noexcept {
    using Rule = FrameRules::Rule;
    const std::int32_t operand = rules.numbers[number];
    switch (rules.rules[number]) {
        case Rule::unchanged:
            to = registers_.value[number];
            return true;
        case Rule::undefined:
            to = 0;
            return true;
        case Rule::at_offset:
            return memory_.read(end + static_cast<std::uintptr_t>(operand), to);
        case Rule::in_register:
            if (operand < 0 || static_cast<std::size_t>(operand) >= register_count) return false;
            to = registers_.value[operand];
            return true;
        case Rule::at_expression:
        case Rule::is_expression:
            break;
    }
    const TableBytes expression = rules.expression_at(rules.base + operand);
    if (!evaluate(expression, registers_, end, memory_, to)) return false;
    return rules.rules[number] == Rule::is_expression || memory_.read(to, to);
}

bool Frame::step() noexcept {
    using Rule = FrameRules::Rule;
    FrameRules rules;
    const std::size_t of_return = function_.group.return_register;
    if (code_ != LoadedTables::Code::described || of_return >= register_count ||
        !find_rules(function_, instruction(), rules)) {
        return false;
    }
    // The outermost function's return address is undefined.
    const Rule rule = rules.rules[of_return];
    if (rule == Rule::undefined || rule == Rule::unchanged) return false;
    registers_.value[of_return] = address_;
    std::uintptr_t end = 0;
    if (!find_end(rules, end)) return false;
    // Only a signal handler may have a stack of its own.
    if (end <= end_ && !function_.group.is_signal_frame) return false;
    Registers callers;
    for (std::uint32_t left = rules.changed; left != 0; left &= left - 1) {
        const auto number = static_cast<std::size_t>(std::countr_zero(left));
        if (!restore(rules, end, number, callers.value[number])) return false;
    }
    registers_.value[stack_pointer] = end;
    for (std::uint32_t left = rules.changed; left != 0; left &= left - 1) {
        const auto number = static_cast<std::size_t>(std::countr_zero(left));
        registers_.value[number] = callers.value[number];
    }
    slot_ = nullptr;
    if (rule == Rule::at_offset && !function_.group.is_signal_frame) {
        slot_ = reinterpret_cast<const std::uintptr_t*>(
            end + static_cast<std::uintptr_t>(rules.numbers[of_return]));
    }
    address_ = registers_.value[of_return];
    end_ = end;
    is_interrupted_ = function_.group.is_signal_frame;
    code_ = tables_.find(instruction(), function_);
    return code_ != LoadedTables::Code::unknown;
}

}  // namespace tensorpool::platform::unwind

namespace tensorpool::platform {

std::size_t capture_stack(std::uintptr_t* frames, std::size_t max,
                          const std::uintptr_t** slots) noexcept {
    unwind::Registers registers{};
    const std::uintptr_t here = unwind::take_registers(registers);
    unwind::Frame frame(registers, here);
    std::size_t count = 0;
    while (count != max && frame.step()) {
        // The call is before the address to which it returns.
        frames[count] = frame.address() - 1;
        if (slots != nullptr) slots[count] = frame.slot();
        ++count;
    }
    return count;
}

}  // namespace tensorpool::platform
