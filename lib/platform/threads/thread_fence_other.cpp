// Systems without fences in all threads of a process.

#include "platform/platform.hpp"

namespace tensorpool::platform {

bool prepare_fences() noexcept {
    return false;
}
bool is_single_threaded() noexcept {
    return false;
}
bool fence_all_threads() noexcept {
    return false;
}

}  // namespace tensorpool::platform
