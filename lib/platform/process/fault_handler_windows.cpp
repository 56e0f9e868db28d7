#include "platform/process/fault_handler.hpp"

namespace tensorpool::platform {

bool handle_faults(FaultFunction) noexcept {
    return false;
}

}  // namespace tensorpool::platform
