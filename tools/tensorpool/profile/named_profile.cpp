#include "profile/named_profile.hpp"

#include <algorithm>
#include <cmath>

namespace tensorpool::command::profile {
namespace {

constexpr const char* other_stacks = "[other stacks]";

double estimated_blocks(const ProfileSite& site, Value value) noexcept {
    switch (value) {
        case Value::live:
            return site.live_blocks;
        case Value::peak:
            return site.peak_blocks;
        case Value::allocated:
            break;
    }
    return site.allocated_blocks;
}

}  // namespace

std::string_view name_of(Value value) noexcept {
    constexpr std::string_view names[] = {"live", "peak", "allocated"};
    return names[static_cast<std::size_t>(value)];
}

std::uint64_t bytes_of(const ProfileSite& site, Value value) noexcept {
    switch (value) {
        case Value::live:
            return site.live_bytes;
        case Value::peak:
            return site.peak_bytes;
        case Value::allocated:
            break;
    }
    return site.allocated_bytes;
}

std::uint64_t blocks_of(const ProfileSite& site, Value value) noexcept {
    constexpr double end = 0x1p62;  // the process may have written anything
    const double blocks = std::round(estimated_blocks(site, value));
    const std::uint64_t min = bytes_of(site, value) == 0 ? 0 : 1;
    return blocks > 0 && blocks < end ? std::max(min, static_cast<std::uint64_t>(blocks)) : min;
}

std::uint64_t NamedProfile::total(Value of) const noexcept {
    std::uint64_t bytes = 0;
    for (const ProfileSite& site : profile.sites) bytes += bytes_of(site, of);
    return bytes;
}

std::vector<std::string> stack_of(const NamedProfile& named, const ProfileSite& site) {
    if (site.stack.empty()) return {other_stacks};
    std::vector<std::string> texts;
    for (const std::uint32_t index : site.stack) {
        texts.push_back(to_short_text(named.frames[index]));
    }
    return texts;
}

std::string line_of(const NamedProfile& named, const ProfileSite& site) {
    std::vector<const inspect::FrameName*> frames;
    for (const std::uint32_t index : site.stack) frames.push_back(&named.frames[index]);
    std::ranges::reverse(frames);
    const inspect::FrameName* const line = inspect::line_of_program(frames);
    return line == nullptr ? other_stacks : to_short_text(*line);
}

}  // namespace tensorpool::command::profile
