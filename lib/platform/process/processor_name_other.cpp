// Systems whose processor name is not read.

#include "platform/platform.hpp"

namespace tensorpool::platform {

ProcessorName processor_name() noexcept {
    return {};
}

}  // namespace tensorpool::platform
