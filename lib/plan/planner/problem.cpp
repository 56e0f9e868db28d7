#include "plan/planner/problem.hpp"

#include <bit>
#include <stdexcept>

namespace tensorpool::planner {
namespace {

[[noreturn]] void refuse(std::size_t index, const std::string& what) {
    throw std::invalid_argument("tensorpool: plan: buffer " + std::to_string(index) + what);
}

void check(const TensorLifetime& buffer, std::size_t index) {
    if (buffer.end <= buffer.begin) {
        refuse(index, " is alive in [" + std::to_string(buffer.begin) + ", " +
                          std::to_string(buffer.end) + "); expected an end after the beginning");
    }
    if (!std::has_single_bit(buffer.alignment)) {
        refuse(index, " is aligned to " + std::to_string(buffer.alignment) +
                          " B; expected a power of two");
    }
}

}  // namespace

void check_count(std::size_t buffers) {
    if (buffers <= max_buffers) return;
    throw std::invalid_argument("tensorpool: plan: " + std::to_string(buffers) +
                                " buffers; expected at most " + std::to_string(max_buffers));
}

void check_lifetimes(std::span<const TensorLifetime> lifetimes) {
    check_count(lifetimes.size());
    std::uint64_t room = max_bytes;
    for (std::size_t i = 0; i < lifetimes.size(); ++i) {
        const TensorLifetime& buffer = lifetimes[i];
        check(buffer, i);
        const std::uint64_t padding = buffer.alignment - 1;
        if (padding > room || buffer.bytes > room - padding) {
            refuse(i, " of " + std::to_string(buffer.bytes) + " B, aligned to " +
                          std::to_string(buffer.alignment) +
                          " B, makes all sizes and alignments together exceed 2^63 B; expected at "
                          "most 2^63 B");
        }
        room -= buffer.bytes + padding;
    }
}

}  // namespace tensorpool::planner
