#pragma once

#include <cstdint>

namespace tensorpool::device {

/// Names a stream permanently: by its device and its number there. Number 0 is the default stream.
struct StreamName {
    std::uint16_t device = 0xFFFF;
    std::uint32_t number = 0;

    static constexpr StreamName host() noexcept { return {}; }
    constexpr bool is_host() const noexcept { return device == 0xFFFF; }
    friend constexpr bool operator==(const StreamName&, const StreamName&) = default;
};

/// The part of an operation that is kept for as long as a hazard may refer to it.
struct Operation {
    std::uint64_t number = 0;  // 0: none
    std::uint64_t tick = 0;    // position on its timeline
    std::uint32_t timeline = 0;
    std::uint32_t label = 0;  // number in HazardLog
    StreamName stream;

    friend bool operator==(const Operation&, const Operation&) = default;
};

}  // namespace tensorpool::device
