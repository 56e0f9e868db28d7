// Systems that are not asked for the name of the processor.

#include "platform/platform.hpp"

namespace tensorpool::platform {

ProcessorName processor_name() noexcept {
    return {};
}

}  // namespace tensorpool::platform
