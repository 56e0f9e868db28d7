#include <tensorpool/system_memory.hpp>

#include "platform/platform.hpp"

namespace tensorpool {

std::size_t get_available_memory() {
    return platform::available_memory();
}

std::size_t get_total_memory() {
    return platform::total_memory();
}

}  // namespace tensorpool
