#include "snapshot/segment_snapshot.hpp"

namespace tensorpool::snapshots {
namespace {

using namespace statistics;
using read::SegmentProblem;
using read::SegmentView;

std::uint64_t value_of(const Counter& counter) noexcept {
    return counter.load(std::memory_order_relaxed);
}

double blocks_of(std::uint64_t units) noexcept {
    return static_cast<double>(units) / SiteRecord::block_units;
}

/// What is left of a total. The process may have freed more between two loads.
std::uint64_t rest(std::uint64_t total, std::uint64_t part) noexcept {
    return total - std::min(total, part);
}

/// Gives each frame that occurs a number.
class Frames {
public:
    Frames(const SegmentImage& image, std::vector<ProfileFrame>& frames)
        : names_(image.records<FrameNameRecord>()), frames_(frames) {}

    std::uint32_t number_of(std::uint64_t word) {
        const auto [at, is_new] =
            numbers_.try_emplace(word, static_cast<std::uint32_t>(frames_.size()));
        if (is_new) frames_.push_back(frame_of(word));
        return at->second;
    }

private:
    ProfileFrame frame_of(std::uint64_t word) const {
        constexpr unsigned bits = SiteRecord::offset_bits;
        const std::uint64_t name = word >> bits;
        ProfileFrame frame{.module = {}, .offset = word & ((std::uint64_t{1} << bits) - 1)};
        if (name == 0 || name > names_.size()) return frame;
        char text[FrameNameRecord::bytes];
        load_text(names_[name - 1].words, text);
        frame.module = text;
        return frame;
    }

    std::span<const FrameNameRecord> names_;
    std::vector<ProfileFrame>& frames_;
    std::map<std::uint64_t, std::uint32_t> numbers_;  // another process chooses the keys
};

ProfileSite read_site(const SiteRecord& frees, const SiteRecord& record, Frames& frames) {
    ProfileSite site;
    const std::uint64_t freed_bytes = frees.freed_bytes.load(std::memory_order_acquire);
    const std::uint64_t freed_blocks = frees.freed_blocks.load(std::memory_order_acquire);
    site.id = value_of(record.id);
    site.samples = value_of(record.samples);
    site.allocated_bytes = value_of(record.allocated_bytes);
    site.live_bytes = rest(site.allocated_bytes, freed_bytes);
    const std::uint64_t allocated_blocks = value_of(record.allocated_blocks);
    site.allocated_blocks = blocks_of(allocated_blocks);
    site.live_blocks = blocks_of(rest(allocated_blocks, freed_blocks));
    site.peak_bytes = value_of(record.peak_bytes);
    site.peak_blocks = blocks_of(value_of(record.peak_blocks));
    for (std::size_t i = 0; i != ProfileSite::lifetime_count; ++i) {
        site.lifetimes[i] = blocks_of(value_of(record.lifetimes[i]));
    }
    const auto count =
        std::min<std::uint64_t>(value_of(record.frame_count), SiteRecord::max_frames);
    for (std::uint64_t i = 0; i != count; ++i) {
        site.stack.push_back(frames.number_of(value_of(record.frames[i])));
    }
    return site;
}

/// Limits estimates by what pools counted, in proportion: live bytes by those in use, and those
/// allocated by those requested. Pools that count apart from the segment are added to it only from
/// time to time, so they set no limit.
void limit_to_counters(HeapProfile& profile, const ProcessSnapshot& counted,
                       std::uint64_t requested_before) {
    if (counted.pools.empty() || counted.left_out.at("pools") != 0) return;
    std::uint64_t in_use = 0;
    std::uint64_t requested = requested_before;
    for (const PoolStatistics& pool : counted.pools) {
        in_use += pool.in_use_bytes;
        requested += pool.requested_bytes;
    }
    const auto sum = [&](auto bytes_of) {
        double bytes = 0;
        for (const ProfileSite& site : profile.sites) bytes += static_cast<double>(bytes_of(site));
        return bytes;
    };
    const auto part = [](double most, double bytes) { return bytes <= most ? 1 : most / bytes; };
    const auto freed_by = [](const ProfileSite& site) {
        return site.allocated_bytes - site.live_bytes;
    };
    const double all_live = sum([](const ProfileSite& site) { return site.live_bytes; });
    const double live = part(static_cast<double>(std::min(in_use, requested)), all_live);
    const double freed = part(static_cast<double>(requested) - live * all_live, sum(freed_by));
    for (ProfileSite& site : profile.sites) {
        const double freed_bytes = freed * static_cast<double>(freed_by(site));
        const double freed_blocks = freed * (site.allocated_blocks - site.live_blocks);
        site.live_bytes = static_cast<std::uint64_t>(live * static_cast<double>(site.live_bytes));
        site.live_blocks *= live;
        site.allocated_bytes = site.live_bytes + static_cast<std::uint64_t>(freed_bytes);
        site.allocated_blocks = site.live_blocks + freed_blocks;
    }
}

void take_peak_of_now(HeapProfile& profile) {
    std::uint64_t live_bytes = 0;
    for (const ProfileSite& site : profile.sites) live_bytes += site.live_bytes;
    if (live_bytes <= profile.peak_bytes) return;
    profile.peak_bytes = live_bytes;
    profile.peak_unix_ns = profile.time_unix_ns;
    for (ProfileSite& site : profile.sites) {
        site.peak_bytes = site.live_bytes;
        site.peak_blocks = site.live_blocks;
    }
}

}  // namespace

static_assert(ProfileSite::lifetime_count == SiteRecord::lifetime_count);

std::optional<read::SegmentProblem> read_heap_profile(read::SegmentView& view, HeapProfile& to) {
    if (auto problem = view.refresh()) return problem;
    const SegmentHeader& header = view.later().header();
    char text[Name::bytes];
    load_name(header.process_name, text);
    to.process_name = text;
    to.interval = value_of(header.profile.interval);
    to.lost_samples = value_of(header.profile.lost_samples);
    to.peak_bytes = value_of(header.profile.peak_bytes);
    to.peak_unix_ns = value_of(header.profile.peak_unix_ns);
    const std::uint64_t distances = value_of(header.profile.distances);
    const std::uint64_t requested_before = value_of(header.profile.requested_bytes_of_ended_pools);
    std::uint64_t samples = 0;
    Frames frames(view.later(), to.frames);
    const auto earlier = view.earlier().records<SiteRecord>();
    const auto later = view.later().records<SiteRecord>();
    for (std::size_t i = 0; i != std::min(earlier.size(), later.size()); ++i) {
        if (value_of(later[i].samples) == 0) continue;
        to.sites.push_back(read_site(earlier[i], later[i], frames));
        samples += to.sites.back().samples;
    }
    if (samples != 0) to.mean_distance = distances / samples;
    ProcessSnapshot counted;
    if (auto problem = read_segment(view, counted)) return problem;
    limit_to_counters(to, counted, requested_before);
    take_peak_of_now(to);
    return std::nullopt;
}

}  // namespace tensorpool::snapshots
