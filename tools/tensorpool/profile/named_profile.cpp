#include "profile/named_profile.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tensorpool::command::profile {
namespace {

constexpr const char* other_stacks = "[other stacks]";

/// The frames of a profile in the form whose names `FrameNames` finds.
trace::Recording recording_of(const HeapProfile& profile) {
    trace::Recording recording;
    recording.modules.push_back({.path = "?"});
    recording.stacks.emplace_back();
    std::unordered_map<std::string, std::uint32_t> modules = {{"", 0}};
    for (const ProfileFrame& frame : profile.frames) {
        const auto next = static_cast<std::uint32_t>(recording.modules.size());
        const auto [at, is_new] = modules.try_emplace(frame.module, next);
        if (is_new) recording.modules.push_back({.path = frame.module});
        recording.stacks.front().push_back({at->second, frame.offset});
    }
    return recording;
}

/// Whether a call is part of tensorpool, which a program may contain.
bool is_own(const inspect::FrameName& frame) {
    return frame.internal && (frame.location.function.starts_with("tensorpool::") ||
                              inspect::is_pools_library(frame.module));
}

/// Turns a stack around, and removes the innermost calls that are tensorpool's, unless all are.
void turn_around(std::vector<std::uint32_t>& stack, const std::vector<inspect::FrameName>& frames) {
    std::erase_if(stack, [&](std::uint32_t index) { return index >= frames.size(); });
    const auto caller =
        std::ranges::find_if_not(stack, [&](std::uint32_t index) { return is_own(frames[index]); });
    if (caller != stack.end()) stack.erase(stack.begin(), caller);
    std::ranges::reverse(stack);
}

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

NamedProfile name_frames(HeapProfile profile, Value value) {
    NamedProfile named;
    named.profile = std::move(profile);
    named.value = value;
    const trace::Recording recording = recording_of(named.profile);
    inspect::FrameNames names(recording);
    for (const trace::RecordedFrame frame : recording.stacks.front()) {
        named.frames.push_back(names.name(frame));
    }
    for (ProfileSite& site : named.profile.sites) turn_around(site.stack, named.frames);
    named.problems = names.problems();
    const auto rank = [&](const ProfileSite& site) {
        return std::tuple(bytes_of(site, value), site.live_bytes, site.peak_bytes,
                          site.allocated_bytes, site.id);
    };
    std::ranges::sort(named.profile.sites, std::ranges::greater(), rank);
    return named;
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
