#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {
namespace {

constexpr std::size_t max_lines = 10;
constexpr std::size_t max_label_bytes = 120;

struct Line {
    std::string site;  ///< the label
    std::uint64_t live_bytes = 0;
    std::uint64_t allocated_bytes = 0;
};

/// The end of a line says where it is, so a long one is cut at its beginning.
std::string label_of(const NamedProfile& named, const ProfileSite& site) {
    std::string line = valid_utf8(line_of(named, site));
    if (line.size() <= max_label_bytes) return line;
    std::size_t cut = line.size() - max_label_bytes + 3;
    const auto is_inside = [&] { return (static_cast<unsigned char>(line[cut]) & 0xC0U) == 0x80U; };
    while (cut < line.size() && is_inside()) ++cut;  // the middle of a character
    return "..." + line.substr(cut);
}

std::vector<Line> largest_lines(const NamedProfile& named) {
    std::map<std::string, Line> by_label;
    for (const ProfileSite& site : named.profile.sites) {
        std::string label = label_of(named, site);
        Line& line = by_label[label];
        line.site = std::move(label);
        line.live_bytes += site.live_bytes;
        line.allocated_bytes += site.allocated_bytes;
    }
    std::vector<Line> lines;
    for (auto& [label, line] : by_label) lines.push_back(std::move(line));
    std::ranges::stable_sort(lines, std::ranges::greater(), &Line::live_bytes);
    lines.resize(std::min(lines.size(), max_lines));
    return lines;
}

}  // namespace

std::vector<MetricFamily> site_metrics(const std::vector<NamedProfile>& processes) {
    MetricFamily live{.name = "tensorpool_site_live_bytes",
                      .help =
                          "Estimated bytes in use of the blocks that this line of the program "
                          "allocated, for the ten lines with the most.",
                      .kind = MetricFamily::Kind::gauge,
                      .samples = {}};
    MetricFamily allocated{.name = "tensorpool_site_allocated_bytes_total",
                           .help =
                               "Estimated bytes of all allocations by this line of the program so "
                               "far, for the ten lines with the most bytes in use.",
                           .kind = MetricFamily::Kind::counter,
                           .samples = {}};
    for (const NamedProfile& named : processes) {
        for (const Line& line : largest_lines(named)) {
            const std::vector<std::pair<std::string, std::string>> labels = {
                {"pid", std::to_string(named.profile.process)},
                {"process", valid_utf8(named.profile.process_name)},
                {"site", line.site}};
            live.samples.push_back({labels, static_cast<double>(line.live_bytes)});
            allocated.samples.push_back({labels, static_cast<double>(line.allocated_bytes)});
        }
    }
    if (live.samples.empty()) return {};
    return {live, allocated};
}

}  // namespace tensorpool::command::profile
