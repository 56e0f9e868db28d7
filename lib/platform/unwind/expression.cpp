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
    bool is_bad() const noexcept { return is_bad_; }

private:
    static constexpr std::size_t max = 16;

    std::uintptr_t values_[max] = {};
    std::size_t count_ = 0;
    bool is_bad_ = false;
};

// Those that occur in the tables of unwinding that compilers and assemblers write on x86-64.
enum Operation : std::uint8_t {
    deref = 0x06,
    const1u = 0x08,
    const8s = 0x0F,
    drop = 0x13,
    and_ = 0x1A,
    minus = 0x1C,
    mul = 0x1E,
    plus = 0x22,
    plus_uconst,
    shl,
    ge = 0x2A,
    lit0 = 0x30,
    lit31 = 0x4F,
    breg0 = 0x70,
    breg31 = 0x8F,
};

std::uintptr_t calculate(std::uint8_t operation, std::uintptr_t a, std::uintptr_t b) noexcept {
    switch (operation) {
        case and_:
            return a & b;
        case minus:
            return a - b;
        case mul:
            return a * b;
        case plus:
            return a + b;
        case shl:
            return b < 8 * sizeof a ? a << b : 0;
        default:
            return static_cast<std::intptr_t>(a) >= static_cast<std::intptr_t>(b) ? 1 : 0;
    }
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
        case drop:
            values.pop();
            return true;
        case plus_uconst:
            values.push(values.pop() + expression.take_uleb());
            return true;
        case and_:
        case minus:
        case mul:
        case plus:
        case shl:
        case ge: {
            const std::uintptr_t b = values.pop();
            const std::uintptr_t a = values.pop();
            values.push(calculate(operation, a, b));
            return true;
        }
        default:
            if (operation < const1u || operation > const8s) return false;
            // Of 1, 2, 4 and 8 bytes, each without a sign and with one.
            const unsigned form = operation - unsigned{const1u};
            values.push(expression.take_number(std::size_t{1} << form / 2, form % 2 != 0));
            return true;
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
