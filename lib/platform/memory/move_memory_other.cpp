// Systems that cannot move memory and keep the old address range in one step.

#include "platform/platform.hpp"

namespace tensorpool::platform {

bool can_move_memory() noexcept {
    return false;
}
bool move_memory(void*, void*, std::size_t) noexcept {
    return false;
}

}  // namespace tensorpool::platform
