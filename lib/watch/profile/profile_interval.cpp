#include "watch/profile/profile_interval.hpp"

#include <algorithm>
#include <atomic>
#include <string_view>

#include <tensorpool/heap_profile.hpp>

#include "platform/environment.hpp"
#include "platform/platform.hpp"
#include "statistics/segment/segment.hpp"

namespace tensorpool {
namespace watch {
namespace {

constexpr std::uint64_t usual = std::uint64_t{512} << 10;
constexpr std::uint64_t least_of_environment = 1024;
constexpr std::uint64_t largest = std::uint64_t{1} << 40;
constexpr std::uint64_t unknown = UINT64_MAX;
// Relaxed: threads may use the old value for some samples.
constinit std::atomic<std::uint64_t> interval = unknown;

// Does not use std::string: a pool that makes its first sample may serve malloc. Programs that did
// not ask for samples take none: threads that end soon cost many times as much with them.
std::uint64_t interval_of_environment() noexcept {
    const char* const text = platform::environment_variable("TENSORPOOL_PROFILE");
    if (text == nullptr || *text == '\0') return 0;
    const std::string_view wanted = text;
    if (wanted == "off") return 0;
    if (wanted == "on") return usual;
    if (wanted == "all") return 1;
    const auto bytes = platform::parse_bytes(text);
    if (bytes && *bytes >= least_of_environment) return std::min<std::uint64_t>(*bytes, largest);
    platform::say(
        "TENSORPOOL_PROFILE is '%.60s'; expected on, off, all, or the mean distance between "
        "samples "
        "from 1KiB on; used instead: 512KiB",
        text);
    return usual;
}

}  // namespace

std::uint64_t profile_interval() noexcept {
    std::uint64_t bytes = interval.load(std::memory_order_relaxed);
    if (bytes != unknown) [[likely]]
        return bytes;
    const std::uint64_t wanted = interval_of_environment();
    // Another thread may have set it in the meantime.
    return interval.compare_exchange_strong(bytes, wanted, std::memory_order_relaxed) ? wanted
                                                                                      : bytes;
}

void show_profile_interval() noexcept {
    statistics::SegmentHeader* const header = statistics::segment().header();
    if (header == nullptr) return;
    std::uint64_t shown = 0;
    do {
        shown = profile_interval();
        // Between the stores of the interval by `set_profile_interval` and here: of two threads,
        // one sees the store of the other.
        std::atomic_thread_fence(std::memory_order_seq_cst);
        header->profile.interval.store(shown, std::memory_order_relaxed);
        std::atomic_thread_fence(std::memory_order_seq_cst);
    } while (profile_interval() != shown);
}

}  // namespace watch

std::size_t profile_interval() noexcept {
    return static_cast<std::size_t>(watch::profile_interval());
}

void set_profile_interval(std::size_t bytes) noexcept {
    bytes = std::min(bytes, watch::largest);
    watch::interval.store(bytes, std::memory_order_relaxed);
    watch::show_profile_interval();
}

}  // namespace tensorpool
