#include "platform/stacks/call_stack.hpp"
#include "platform/unwind/frame.hpp"

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
