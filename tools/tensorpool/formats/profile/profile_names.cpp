#include "formats/profile/profile_names.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace tensorpool::command::profile {
namespace {

/// Whether a call is part of tensorpool, which a program may contain.
bool is_own(const symbols::FrameName& frame) {
    return frame.internal && (frame.location.function.starts_with("tensorpool::") ||
                              symbols::is_pools_library(frame.module));
}

/// Turns a stack around, and removes the innermost calls that are tensorpool's, unless all are.
void turn_around(std::vector<std::uint32_t>& stack, const std::vector<symbols::FrameName>& frames) {
    std::erase_if(stack, [&](std::uint32_t index) { return index >= frames.size(); });
    const auto caller =
        std::ranges::find_if_not(stack, [&](std::uint32_t index) { return is_own(frames[index]); });
    if (caller != stack.end()) stack.erase(stack.begin(), caller);
    std::ranges::reverse(stack);
}

}  // namespace

NamedProfile ProfileNames::name(HeapProfile profile, Value value) {
    NamedProfile named;
    named.profile = std::move(profile);
    named.value = value;
    for (const ProfileFrame& frame : named.profile.frames) {
        const std::string path = frame.module.empty() ? "?" : frame.module;
        named.frames.push_back(names_.name({module_of(path), frame.offset}));
    }
    for (ProfileSite& site : named.profile.sites) turn_around(site.stack, named.frames);
    named.problems = names_.problems();
    const auto rank = [&](const ProfileSite& site) {
        return std::tuple(bytes_of(site, value), site.live_bytes, site.peak_bytes,
                          site.allocated_bytes, site.id);
    };
    std::ranges::sort(named.profile.sites, std::ranges::greater(), rank);
    return named;
}

std::uint32_t ProfileNames::module_of(const std::string& path) {
    const auto next = static_cast<std::uint32_t>(recording_.modules.size());
    const auto [at, is_new] = modules_.try_emplace(path, next);
    if (is_new) recording_.modules.push_back({.path = path});
    return at->second;
}

NamedProfile name_frames(HeapProfile profile, Value value) {
    return ProfileNames().name(std::move(profile), value);
}

}  // namespace tensorpool::command::profile
