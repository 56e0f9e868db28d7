#include "platform/memory/guard_pages.hpp"

#include "platform/platform.hpp"

namespace tensorpool::platform {

bool install_guard(void* address, std::size_t bytes) noexcept {
    return decommit(address, bytes);
}

bool remove_guard(void* address, std::size_t bytes) noexcept {
    return commit(address, bytes);
}

bool deny_access(void*, std::size_t) noexcept {
    return false;
}

std::uint64_t random_bits() noexcept {
    int on_stack = 0;
    return monotonic_clock_ns() * 0x9E3779B97F4A7C15 ^ reinterpret_cast<std::uintptr_t>(&on_stack);
}

}  // namespace tensorpool::platform
