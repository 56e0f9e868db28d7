#include "formats/profile/named_profile.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>
#include <utility>

namespace tensorpool::command::profile {
namespace {

constexpr const char* other_stacks = "[other stacks]";

void add(ProfileSite& to, const ProfileSite& site) {
    to.samples += site.samples;
    to.live_bytes += site.live_bytes;
    to.live_blocks += site.live_blocks;
    to.allocated_bytes += site.allocated_bytes;
    to.allocated_blocks += site.allocated_blocks;
    to.peak_bytes += site.peak_bytes;
    to.peak_blocks += site.peak_blocks;
    for (std::size_t i = 0; i < to.lifetimes.size(); ++i) to.lifetimes[i] += site.lifetimes[i];
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

std::vector<std::string> stack_of(const NamedProfile& named, const ProfileSite& site) {
    if (site.stack.empty()) return {other_stacks};
    std::vector<std::string> texts;
    for (const std::uint32_t index : site.stack) {
        texts.push_back(to_short_text(named.frames[index]));
    }
    return texts;
}

std::string line_of(const NamedProfile& named, const ProfileSite& site) {
    std::vector<const symbols::FrameName*> frames;
    for (const std::uint32_t index : site.stack) frames.push_back(&named.frames[index]);
    std::ranges::reverse(frames);
    const symbols::FrameName* const line = symbols::line_of_program(frames);
    return line == nullptr ? other_stacks : to_short_text(*line);
}

NamedProfile sum_by_line(NamedProfile named) {
    std::vector<ProfileSite> sums;
    std::unordered_map<std::string, std::size_t> indices;
    for (ProfileSite& site : named.profile.sites) {
        const auto [at, is_new] = indices.try_emplace(line_of(named, site), sums.size());
        if (is_new) {
            sums.push_back(std::move(site));
        } else {
            add(sums[at->second], site);
        }
    }
    const auto bytes = [&](const ProfileSite& sum) { return bytes_of(sum, named.value); };
    std::ranges::stable_sort(sums, std::ranges::greater(), bytes);
    named.profile.sites = std::move(sums);
    return named;
}

}  // namespace tensorpool::command::profile
