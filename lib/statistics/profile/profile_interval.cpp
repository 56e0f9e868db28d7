#include "statistics/profile/profile_interval.hpp"

#include <atomic>
#include <string_view>

#include <tensorpool/heap_profile.hpp>

#include "platform/environment.hpp"
#include "platform/platform.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool {
namespace statistics {
namespace {

constexpr std::uint64_t usual = std::uint64_t{512} << 10;
constexpr std::uint64_t unknown = UINT64_MAX;
// Relaxed: threads may use the old value for some samples.
constinit std::atomic<std::uint64_t> interval = unknown;

// Does not use std::string: a pool that makes its first sample may serve malloc.
std::uint64_t interval_of_environment() noexcept {
    const char* const text = platform::environment_variable("TENSORPOOL_PROFILE");
    if (text == nullptr || *text == '\0') return usual;
    if (std::string_view(text) == "off") return 0;
    if (const auto bytes = platform::parse_bytes(text)) return *bytes;
    platform::say(
        "TENSORPOOL_PROFILE is '%.60s'; expected off or the mean distance between samples such as "
        "512KiB; used instead: 512KiB",
        text);
    return usual;
}

}  // namespace

std::uint64_t profile_interval() noexcept {
    std::uint64_t bytes = interval.load(std::memory_order_relaxed);
    if (bytes != unknown) [[likely]]
        return bytes;
    const std::uint64_t wanted = interval_of_environment();
    // Another thread may have set it meanwhile.
    return interval.compare_exchange_strong(bytes, wanted, std::memory_order_relaxed) ? wanted
                                                                                      : bytes;
}

}  // namespace statistics

std::size_t profile_interval() noexcept {
    return static_cast<std::size_t>(statistics::profile_interval());
}

void set_profile_interval(std::size_t bytes) noexcept {
    statistics::interval.store(bytes, std::memory_order_relaxed);
    if (statistics::SegmentHeader* const header = statistics::segment().header()) {
        header->profile.interval.store(bytes, std::memory_order_relaxed);
    }
}

}  // namespace tensorpool
