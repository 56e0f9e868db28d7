#pragma once

#include <cstddef>
#include <cstdint>

#include "platform/stacks/program_stack.hpp"
#include "statistics/segment/segment_layout.hpp"

namespace tensorpool::watch {

using statistics::SiteRecord;

/// Recognizes a stack that was captured before, many times faster than it can be captured:
/// the same return addresses lie at the same places of the stack, and Python has reached the same
/// instructions. The stacks of all threads share the table. Memory is static. Not thread-safe.
class KnownStacks {
public:
    constexpr KnownStacks() noexcept = default;
    KnownStacks(const KnownStacks&) = delete;
    KnownStacks& operator=(const KnownStacks&) = delete;

    /// Returns the site of the calling thread's stack, or nullptr if it is not known. `base` is the
    /// frame of a function that the caller is in, or was called from, and `python` what
    /// `hash_python_stack` returns.
    SiteRecord* find(const void* base, std::uint64_t python) const noexcept;
    /// Notes the site of the calling thread's stack. What lies inside `base` is not compared.
    void add(const void* base, std::uint64_t python, const platform::StackBuffers& stack,
             SiteRecord& site) noexcept;

private:
    static constexpr std::size_t set_count = 64;
    static constexpr std::size_t ways = 4;
    static constexpr std::size_t max_frames = platform::StackBuffers::max_native;

    struct Known {
        const void* base = nullptr;
        std::uint64_t python = 0;
        SiteRecord* site = nullptr;
        std::uint32_t count = 0;
        std::uint32_t offsets[max_frames] = {};  // from the base
        std::uintptr_t returns[max_frames] = {};

        bool is_on_stack() const noexcept;
    };
    static std::size_t set_of(const void* base) noexcept {
        return reinterpret_cast<std::uintptr_t>(base) / 16 % set_count;
    }

    Known known_[set_count][ways];
    std::uint8_t next_[set_count] = {};  // the way that is replaced next
};

}  // namespace tensorpool::watch
