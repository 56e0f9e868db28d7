#include "interpose/minimum.hpp"

#include "platform/environment.hpp"

namespace tensorpool::interpose {

constinit std::atomic<std::size_t> minimum_bytes = SIZE_MAX;
constinit std::atomic<bool> hardened = false;

std::size_t minimum_from_environment() {
    std::size_t minimum = default_minimum_bytes;
    platform::read_bytes_above_0("TENSORPOOL_INTERPOSE_MIN", minimum);
    return is_hardened() && minimum == 1 ? 0 : minimum;
}

bool is_hardened_by_environment() noexcept {
    const char* const checks = platform::environment_variable("TENSORPOOL_CHECKS");
    return checks != nullptr && std::string_view(checks) == "hardened";
}

}  // namespace tensorpool::interpose
