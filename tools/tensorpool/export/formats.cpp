#include "export/formats.hpp"

namespace tensorpool::command::export_ {
namespace {

Moment find_peak(const History& history) {
    std::uint64_t now = 0;
    std::uint64_t max = 0;
    Moment peak;
    history.walk(
        [&](std::uint32_t i) {
            const Lifetime& lifetime = history.lifetimes()[i];
            now += lifetime.bytes;
            if (now <= max) return;
            max = now;
            peak.calls = lifetime.begin == Lifetime::none ? 0 : lifetime.begin + 1;
        },
        [&](std::uint32_t i) { now -= history.lifetimes()[i].bytes; });
    return peak;
}

}  // namespace

Moment moment_of(const History& history, At at) {
    if (at == At::peak) return find_peak(history);
    return {static_cast<std::uint32_t>(history.recording().calls.size())};
}

}  // namespace tensorpool::command::export_
