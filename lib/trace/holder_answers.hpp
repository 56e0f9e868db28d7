#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string_view>

#include <tensorpool/holder_request.hpp>

#include "platform/platform.hpp"
#include "trace/ring_layout.hpp"

namespace tensorpool::trace {

/// The name of the memory file with an answer, and what precedes the text in it.
inline constexpr const char* holders_file = "tensorpool-holders";
struct HoldersHeader {
    std::uint64_t magic;
    std::uint64_t process;  // the owner: its number in its own name space
    std::uint64_t request;  // the answered one
    std::uint64_t bytes;    // of the text
};
inline constexpr std::uint64_t holders_magic = 0x73646c6f68707465;  // "etpholds" in memory

/// Passes requests to name holders on to the handler of this process. Keeps the last answer in a
/// memory file, which other processes read. Thread-safe.
class HolderAnswers {
public:
    constexpr HolderAnswers() noexcept = default;
    HolderAnswers(const HolderAnswers&) = delete;
    HolderAnswers& operator=(const HolderAnswers&) = delete;

    void set_handler(HolderHandler handler) noexcept;
    /// Passes a new request on. Without a handler, answers it with an empty text.
    void look(Control& control) noexcept;
    void answer(Control& control, std::uint64_t request, std::string_view text) noexcept;

    /// Lock and unlock around a fork. In the child, `forget` closes the parent's answer.
    void lock() noexcept { mutex_.lock(); }
    void unlock() noexcept { mutex_.unlock(); }
    void forget() noexcept;

private:
    void publish(Control& control, std::uint64_t request, std::string_view text) noexcept;

    std::mutex mutex_;
    // The members below require it.
    HolderHandler handler_ = nullptr;
    std::uint64_t passed_on_ = 0;  // the last request
    platform::SharedMemory file_;  // no longer mapped
};

}  // namespace tensorpool::trace
