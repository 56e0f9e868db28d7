#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tensorpool::testing {

/// Makes the system refuse to map more than `max_bytes` bytes at once while it exists. The linker
/// redirects the library's calls (--wrap); scratch_refusals_linux_test.cpp defines the function.
class RefusedMaps {
public:
    explicit RefusedMaps(std::size_t max_bytes) { max_bytes_ = max_bytes; }
    ~RefusedMaps() { max_bytes_ = SIZE_MAX; }
    RefusedMaps(const RefusedMaps&) = delete;
    RefusedMaps& operator=(const RefusedMaps&) = delete;

    static bool refuses(std::size_t bytes) { return bytes > max_bytes_; }

private:
    inline static std::atomic<std::size_t> max_bytes_ = SIZE_MAX;
};

}  // namespace tensorpool::testing
