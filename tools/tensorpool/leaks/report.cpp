#include "leaks/report.hpp"

#include <algorithm>
#include <tuple>
#include <unordered_map>
#include <utility>

namespace tensorpool::command::leaks {
namespace {

Row row_of(const Observation& observation, std::uint64_t id, const Judgement& judged) {
    const auto iterations =
        static_cast<double>(std::max<std::uint64_t>(observation.iterations(), 1));
    Row row;
    row.site.id = id;
    row.judged = judged;
    row.slope = judged.growth / iterations;
    row.slope_uncertainty = judged.uncertainty / iterations;
    row.oldest = observation.iterations_since(judged.oldest);
    row.median_age = observation.iterations_since(judged.median);
    return row;
}

/// Removes the sites and frames that no row needs: reading the symbols of a library takes seconds.
void keep_only(HeapProfile& profile, const std::vector<Row>& rows) {
    std::erase_if(profile.sites, [&](const ProfileSite& site) {
        return std::ranges::none_of(rows, [&](const Row& row) { return row.site.id == site.id; });
    });
    std::vector<ProfileFrame> frames;
    std::unordered_map<std::uint32_t, std::uint32_t> moved;
    for (ProfileSite& site : profile.sites) {
        std::erase_if(site.stack, [&](auto index) { return index >= profile.frames.size(); });
        for (std::uint32_t& index : site.stack) {
            const auto next = static_cast<std::uint32_t>(frames.size());
            const auto [at, is_new] = moved.try_emplace(index, next);
            if (is_new) frames.push_back(profile.frames[index]);
            index = at->second;
        }
    }
    profile.frames = std::move(frames);
}

void sort_rows(std::vector<Row>& rows) {
    std::ranges::sort(rows, std::ranges::less(), [](const Row& row) {
        return std::tuple(row.judged.verdict, -row.judged.growth, row.site.id);
    });
}

}  // namespace

std::uint64_t Report::leaks() const noexcept {
    return static_cast<std::uint64_t>(std::ranges::count_if(
        rows, [](const Row& row) { return row.judged.verdict == Verdict::leak; }));
}

Report judge(const Observation& observation, const Pace& pace) {
    Report report{.pace = pace,
                  .iterations = observation.iterations(),
                  .profiles = observation.profiles(),
                  .seconds = observation.seconds(),
                  .rows = {},
                  .named = {}};
    HeapProfile last = observation.last();
    for (const auto& [id, history] : observation.sites()) {
        const Judgement judged = judge(history, static_cast<double>(last.interval));
        if (judged.verdict == Verdict::steady) {
            ++report.steady;
        } else {
            report.rows.push_back(row_of(observation, id, judged));
            report.rows.back().live = history.live;
        }
    }
    sort_rows(report.rows);
    keep_only(last, report.rows);
    report.named = profile::name_frames(std::move(last), profile::Value::live);
    for (const ProfileSite& site : report.named.profile.sites) {
        std::ranges::find(report.rows, site.id, [](const Row& row) { return row.site.id; })->site =
            site;
    }
    return report;
}

}  // namespace tensorpool::command::leaks
