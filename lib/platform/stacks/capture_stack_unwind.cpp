#include <unwind.h>

#include "platform/stacks/program_stack.hpp"

namespace tensorpool::platform {
namespace {

struct Walk {
    std::uintptr_t* frames;
    std::size_t max;
    const std::uintptr_t** slots;
    std::size_t count;
};

_Unwind_Reason_Code take_frame(_Unwind_Context* context, void* argument) noexcept {
    Walk& walk = *static_cast<Walk*>(argument);
    if (walk.count == walk.max) return _URC_END_OF_STACK;
    const std::uintptr_t address = _Unwind_GetIP(context);
    if (address == 0) return _URC_END_OF_STACK;
    // The call is before the address to which it returns.
    walk.frames[walk.count] = address - 1;
    // Above the return address lies the frame of the caller.
    if (walk.slots != nullptr) {
        walk.slots[walk.count] =
            reinterpret_cast<const std::uintptr_t*>(_Unwind_GetCFA(context)) - 1;
    }
    ++walk.count;
    return _URC_NO_REASON;
}

}  // namespace

std::size_t capture_stack(std::uintptr_t* frames, std::size_t max,
                          const std::uintptr_t** slots) noexcept {
    Walk walk{frames, max, slots, 0};
    _Unwind_Backtrace(take_frame, &walk);
    return walk.count;
}

}  // namespace tensorpool::platform
