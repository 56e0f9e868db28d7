#include "interpose/bootstrap_buffer.hpp"

#include <cstdint>
#include <cstring>

namespace tensorpool::interpose {
namespace {

constexpr std::size_t unit = 64;
constexpr std::size_t capacity = std::size_t{16} << 10;

alignas(unit) constinit unsigned char buffer[capacity] = {};
constinit std::size_t used = 0;

}  // namespace

// The size of each block is stored before it, in a unit of its own.
void* take_from_bootstrap_buffer(std::size_t bytes, std::size_t alignment) noexcept {
    if (alignment > unit || bytes > capacity - used) return nullptr;
    const std::size_t taken = unit + (bytes + unit - 1) / unit * unit;
    if (taken > capacity - used) return nullptr;
    unsigned char* const head = buffer + used;
    std::memcpy(head, &bytes, sizeof bytes);
    used += taken;
    return head + unit;
}

bool bootstrap_buffer_is_used() noexcept {
    return used != 0;
}

bool is_in_bootstrap_buffer(const void* p) noexcept {
    return reinterpret_cast<std::uintptr_t>(p) - reinterpret_cast<std::uintptr_t>(buffer) <
           capacity;
}

std::size_t bytes_in_bootstrap_buffer(const void* p) noexcept {
    std::size_t bytes = 0;
    std::memcpy(&bytes, static_cast<const unsigned char*>(p) - unit, sizeof bytes);
    return bytes;
}

}  // namespace tensorpool::interpose
