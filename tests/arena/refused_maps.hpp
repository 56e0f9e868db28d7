#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::testing {

/// While it lives, the system refuses to map more than so many bytes at once. The linker leads the
/// library's calls past here (--wrap); scratch_refusals_linux_test.cpp has the function.
class RefusedMaps {
public:
    explicit RefusedMaps(std::size_t most) { most_ = most; }
    ~RefusedMaps() { most_ = SIZE_MAX; }
    RefusedMaps(const RefusedMaps&) = delete;
    RefusedMaps& operator=(const RefusedMaps&) = delete;

    static bool refuses(std::size_t bytes) { return bytes > most_; }

private:
    inline static std::atomic<std::size_t> most_ = SIZE_MAX;
};

}  // namespace tensorpool::testing
