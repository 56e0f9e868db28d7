#pragma once

#include <cstddef>
#include <cstdint>

/// For functions that read a stack: what they read may lie between variables of other functions.
#if defined(__GNUC__)
#define TENSORPOOL_READS_STACK __attribute__((no_sanitize("address", "thread")))
#else
#define TENSORPOOL_READS_STACK
#endif

namespace tensorpool::platform {

/// Reads words of the calling thread's stack at addresses that may be wrong. On Linux, the system
/// is asked once for each page that is read after another; elsewhere, pages are not checked.
/// Preserves errno.
class StackMemory {
public:
    /// `here` lies in the frame of a function that has not returned.
    explicit StackMemory(std::uintptr_t here) noexcept : page_(here / page_bytes) {}

    /// Reads the word at `address`. Returns false if it cannot be read or is not aligned.
    TENSORPOOL_READS_STACK bool read(std::uintptr_t address, std::uintptr_t& to) noexcept {
        if (address % sizeof to != 0) return false;
        if (address / page_bytes != page_) {
            if (!is_readable(address)) return false;
            page_ = address / page_bytes;
        }
        to = *reinterpret_cast<const volatile std::uintptr_t*>(address);
        return true;
    }

private:
    static constexpr std::uintptr_t page_bytes = 4096;  // the smallest of all systems

    static bool is_readable(std::uintptr_t address) noexcept;

    std::uintptr_t page_;  // can be read
};

}  // namespace tensorpool::platform
