#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <stdexcept>

/// Helpers for the tests that use the public names only.
namespace tensorpool::testing {

inline bool is_aligned(const void* pointer, std::size_t alignment) {
    return reinterpret_cast<std::uintptr_t>(pointer) % alignment == 0;
}

template <class Call>
bool throws_bad_alloc(Call call) {
    try {
        call();
    } catch (const std::bad_alloc&) {
        return true;
    }
    return false;
}

template <class Call>
bool throws_invalid_argument(Call call) {
    try {
        call();
    } catch (const std::invalid_argument&) {
        return true;
    }
    return false;
}

}  // namespace tensorpool::testing
