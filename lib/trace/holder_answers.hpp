#pragma once

#include <cstddef>
#include <cstdint>
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
/// memory file, which other processes read. REQUIRES: the caller holds the recorder's lock of
/// answers, so that no handler runs after it was removed.
class HolderAnswers {
public:
    constexpr HolderAnswers() noexcept = default;
    HolderAnswers(const HolderAnswers&) = delete;
    HolderAnswers& operator=(const HolderAnswers&) = delete;

    void set_handler(HolderHandler handler) noexcept;
    /// Passes a new request on. Without a handler, answers it with an empty text.
    void look(Control& control) noexcept;
    void answer(Control& control, std::uint64_t request, std::string_view text) noexcept;

    /// Called in the child of a fork: closes the parent's answer.
    void forget() noexcept;

private:
    void publish(Control& control, std::uint64_t request, std::string_view text) noexcept;

    HolderHandler handler_ = nullptr;
    std::uint64_t passed_on_ = 0;  // the last request
    platform::SharedMemory file_;  // no longer mapped
};

}  // namespace tensorpool::trace
