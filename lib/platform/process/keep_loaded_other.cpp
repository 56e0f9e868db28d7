#include "platform/process/keep_loaded.hpp"

namespace tensorpool::platform {

bool keep_loaded() noexcept {
    return false;
}

}  // namespace tensorpool::platform
