#include "interpose/minimum.hpp"

#include "platform/environment.hpp"

namespace tensorpool::interpose {

constinit std::atomic<std::size_t> minimum_bytes = SIZE_MAX;

std::size_t minimum_from_environment() {
    std::size_t minimum = default_minimum_bytes;
    platform::read_bytes_above_0("TENSORPOOL_INTERPOSE_MIN", minimum);
    return minimum;
}

}  // namespace tensorpool::interpose
