#include "platform/stacks/call_stack.hpp"

#include <dlfcn.h>
#include <unistd.h>
#include <unwind.h>

#if __has_include(<link.h>)
#include <link.h>
#endif

#include <atomic>
#include <cstdint>

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

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// The loader's list has no name for the program's own file. The first thread that needs the name
// reads it; other threads do not wait, because in the child of a fork that interrupted the reading
// they would wait forever.
const char* own_path() noexcept {
    enum class State : std::uint8_t { unknown, being_read, known };
    static constinit std::atomic<State> state = State::unknown;
    static constinit char text[512] = {};
    constexpr const char* link = "/proc/self/exe";
    State seen = state.load(std::memory_order_acquire);
    if (seen == State::unknown &&
        state.compare_exchange_strong(seen, State::being_read, std::memory_order_relaxed,
                                      std::memory_order_acquire)) {
        if (::readlink(link, text, sizeof text - 1) < 0) text[0] = '\0';
        state.store(State::known, std::memory_order_release);
        return text;
    }
    return seen == State::known ? text : link;
}
#endif

}  // namespace

std::size_t capture_stack(std::uintptr_t* frames, std::size_t max,
                          const std::uintptr_t** slots) noexcept {
    Walk walk{frames, max, slots, 0};
    _Unwind_Backtrace(take_frame, &walk);
    return walk.count;
}

CodeOrigin find_code(std::uintptr_t address) noexcept {
#ifdef DLFO_STRUCT_HAS_EH_DBASE
    dl_find_object found{};
    if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return {};
    const link_map* const map = found.dlfo_link_map;
    const char* const path = map->l_name[0] != '\0' ? map->l_name : own_path();
    return {path, address - map->l_addr};
#else
    Dl_info found{};
    if (dladdr(reinterpret_cast<void*>(address), &found) == 0) return {};
    return {found.dli_fname, address - reinterpret_cast<std::uintptr_t>(found.dli_fbase)};
#endif
}

}  // namespace tensorpool::platform
