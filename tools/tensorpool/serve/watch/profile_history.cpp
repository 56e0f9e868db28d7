#include "serve/watch/profile_history.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace tensorpool::command::serve {
namespace {

void add_up(ProfileSite& sum, const ProfileSite& site) {
    sum.samples += site.samples;
    sum.live_bytes += site.live_bytes;
    sum.live_blocks += site.live_blocks;
    sum.allocated_bytes += site.allocated_bytes;
    sum.allocated_blocks += site.allocated_blocks;
    sum.peak_bytes += site.peak_bytes;
    sum.peak_blocks += site.peak_blocks;
    for (std::size_t i = 0; i < sum.lifetimes.size(); ++i) sum.lifetimes[i] += site.lifetimes[i];
}

/// Removes the frames that no site uses.
void drop_unused_frames(HeapProfile& profile) {
    constexpr std::uint32_t none = std::numeric_limits<std::uint32_t>::max();
    std::vector<std::uint32_t> numbers(profile.frames.size(), none);
    std::vector<ProfileFrame> used;
    for (ProfileSite& site : profile.sites) {
        std::erase_if(site.stack, [&](std::uint32_t index) { return index >= numbers.size(); });
        for (std::uint32_t& index : site.stack) {
            std::uint32_t& number = numbers[index];
            if (number == none) {
                number = static_cast<std::uint32_t>(used.size());
                used.push_back(std::move(profile.frames[index]));
            }
            index = number;
        }
    }
    profile.frames = std::move(used);
}

}  // namespace

HeapProfile fold_small_sites(HeapProfile profile, double min_part) {
    ProfileSite all;
    for (const ProfileSite& site : profile.sites) add_up(all, site);
    const auto is_small = [&](const ProfileSite& site) {
        const auto below = [&](std::uint64_t part, std::uint64_t whole) {
            return part == 0 || static_cast<double>(part) < min_part * static_cast<double>(whole);
        };
        return below(site.live_bytes, all.live_bytes) && below(site.peak_bytes, all.peak_bytes);
    };
    const auto small =
        std::stable_partition(profile.sites.begin(), profile.sites.end(), std::not_fn(is_small));
    if (small != profile.sites.end()) {
        ProfileSite folded;
        std::for_each(small, profile.sites.end(), [&](const auto& site) { add_up(folded, site); });
        profile.sites.erase(small, profile.sites.end());
        profile.sites.push_back(std::move(folded));
    }
    drop_unused_frames(profile);
    return profile;
}

bool ProfileHistory::is_due(std::uint64_t steady_ns) const noexcept {
    return profiles_.empty() || steady_ns >= last_ns_ + step_ns;
}

void ProfileHistory::add(HeapProfile profile, std::uint64_t steady_ns) {
    last_ns_ = steady_ns;
    profiles_.push_back(
        std::make_shared<const HeapProfile>(fold_small_sites(std::move(profile), min_part)));
    if (profiles_.size() > max_count) profiles_.pop_front();
}

std::vector<std::uint64_t> ProfileHistory::times() const {
    std::vector<std::uint64_t> times;
    for (const auto& profile : profiles_) times.push_back(profile->time_unix_ns);
    return times;
}

std::shared_ptr<const HeapProfile> ProfileHistory::at(std::uint64_t time_unix_ns) const {
    const auto found = std::ranges::find_if(
        profiles_.rbegin(), profiles_.rend(),
        [&](const auto& profile) { return profile->time_unix_ns <= time_unix_ns; });
    return found == profiles_.rend() ? nullptr : *found;
}

}  // namespace tensorpool::command::serve
