#include "platform/unwind/frame.hpp"

namespace tensorpool::platform::unwind {
namespace {

/// The stack of an expression. Beyond its ends, zeros are taken and `is_bad` becomes true.
class Values {
public:
    void push(std::uintptr_t value) noexcept {
        if (count_ == max) {
            is_bad_ = true;
        } else {
            values_[count_++] = value;
        }
    }
    std::uintptr_t pop() noexcept {
        if (count_ != 0) return values_[--count_];
        is_bad_ = true;
        return 0;
    }
    /// Copies the value below `depth` others.
    void pick(std::size_t depth) noexcept {
        if (depth < count_) {
            push(values_[count_ - 1 - depth]);
        } else {
            is_bad_ = true;
        }
    }
    bool is_bad() const noexcept { return is_bad_; }

private:
    static constexpr std::size_t max = 16;

    std::uintptr_t values_[max] = {};
    std::size_t count_ = 0;
    bool is_bad_ = false;
};

enum Operation : std::uint8_t {
    deref = 0x06,
    const1u = 0x08,
    const8s = 0x0F,
    constu,
    consts,
    dup,
    drop,
    over,
    swap = 0x16,
    and_ = 0x1A,
    minus = 0x1C,
    mul = 0x1E,
    or_ = 0x21,
    plus,
    plus_uconst,
    shl,
    shr,
    eq = 0x29,
    ge,
    gt,
    le,
    lt,
    ne,
    lit0 = 0x30,
    lit31 = 0x4F,
    breg0 = 0x70,
    breg31 = 0x8F,
    nop = 0x96,
};

std::uintptr_t calculate(std::uint8_t operation, std::uintptr_t a, std::uintptr_t b) noexcept {
    const auto signed_a = static_cast<std::intptr_t>(a);
    const auto signed_b = static_cast<std::intptr_t>(b);
    constexpr std::uintptr_t bits = 8 * sizeof a;
    switch (operation) {
        case and_:
            return a & b;
        case minus:
            return a - b;
        case mul:
            return a * b;
        case or_:
            return a | b;
        case plus:
            return a + b;
        case shl:
            return b < bits ? a << b : 0;
        case shr:
            return b < bits ? a >> b : 0;
        case eq:
            return a == b ? 1 : 0;
        case ge:
            return signed_a >= signed_b ? 1 : 0;
        case gt:
            return signed_a > signed_b ? 1 : 0;
        case le:
            return signed_a <= signed_b ? 1 : 0;
        case lt:
            return signed_a < signed_b ? 1 : 0;
        default:
            return a != b ? 1 : 0;
    }
}

/// Pushes the number that the operation is followed by. Returns false for other operations.
bool push_number(std::uint8_t operation, TableBytes& expression, Values& values) noexcept {
    if (operation >= const1u && operation <= const8s) {
        // Of 1, 2, 4 and 8 bytes, each without a sign and with one.
        const unsigned form = operation - unsigned{const1u};
        values.push(expression.take_number(std::size_t{1} << form / 2, form % 2 != 0));
    } else if (operation == constu) {
        values.push(expression.take_uleb());
    } else if (operation == consts) {
        values.push(static_cast<std::uintptr_t>(expression.take_sleb()));
    } else {
        return false;
    }
    return true;
}

/// Returns false if the operation is unknown or cannot be done.
bool apply(std::uint8_t operation, TableBytes& expression, Values& values, StackMemory& memory) {
    switch (operation) {
        case deref: {
            std::uintptr_t word = 0;
            if (!memory.read(values.pop(), word)) return false;
            values.push(word);
            return true;
        }
        case dup:
            values.pick(0);
            return true;
        case drop:
            values.pop();
            return true;
        case over:
            values.pick(1);
            return true;
        case swap: {
            const std::uintptr_t b = values.pop();
            const std::uintptr_t a = values.pop();
            values.push(b);
            values.push(a);
            return true;
        }
        case plus_uconst:
            values.push(values.pop() + expression.take_uleb());
            return true;
        case and_:
        case minus:
        case mul:
        case or_:
        case plus:
        case shl:
        case shr:
        case eq:
        case ge:
        case gt:
        case le:
        case lt:
        case ne: {
            const std::uintptr_t b = values.pop();
            const std::uintptr_t a = values.pop();
            values.push(calculate(operation, a, b));
            return true;
        }
        case nop:
            return true;
        default:
            return push_number(operation, expression, values);
    }
}

}  // namespace

bool evaluate(TableBytes expression, const Registers& registers, std::uintptr_t first,
              StackMemory& memory, std::uintptr_t& result) noexcept {
    Values values;
    values.push(first);
    while (!expression.is_empty()) {
        const auto operation = expression.take<std::uint8_t>();
        if (operation >= lit0 && operation <= lit31) {
            values.push(operation - std::uintptr_t{lit0});
        } else if (operation >= breg0 && operation <= breg31) {
            const std::size_t number = operation - std::size_t{breg0};
            if (number >= register_count) return false;
            values.push(registers.value[number] +
                        static_cast<std::uintptr_t>(expression.take_sleb()));
        } else if (!apply(operation, expression, values, memory)) {
            return false;
        }
    }
    result = values.pop();
    return !values.is_bad() && !expression.is_bad();
}

}  // namespace tensorpool::platform::unwind
