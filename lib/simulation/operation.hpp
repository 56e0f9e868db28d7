#pragma once

#include <cstdint>

namespace tensorpool::device {

/// By which a stream is named for ever: its device and its number there, 0 for the default stream.
struct StreamName {
    std::uint16_t device = 0xFFFF;
    std::uint32_t number = 0;

    static constexpr StreamName host() noexcept { return {}; }
    constexpr bool is_host() const noexcept { return device == 0xFFFF; }
    friend constexpr bool operator==(const StreamName&, const StreamName&) = default;
};

/// What of an operation is kept as long as anything may have to be reported with it.
struct Operation {
    std::uint64_t number = 0;  // 0: none
    std::uint64_t tick = 0;    // on its timeline
    std::uint32_t timeline = 0;
    std::uint32_t label = 0;  // in HazardLog
    StreamName stream;

    friend bool operator==(const Operation&, const Operation&) = default;
};

}  // namespace tensorpool::device
