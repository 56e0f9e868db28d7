#include "platform/stacks/program_stack.hpp"

#include <dlfcn.h>
#include <unistd.h>

#if __has_include(<link.h>)
#include <link.h>
#endif

#include <atomic>

namespace tensorpool::platform {
namespace {

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
