#include <tensorpool/profile_request.hpp>

#include "common/target.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {
namespace {

/// The spans of `ProfileSite::lifetimes`, each from the one before to this time.
constexpr std::array<const char*, ProfileSite::lifetime_count> titles = {
    "<1us",  "<4us",   "<16us", "<64us", "<256us", "<1ms", "<4ms",  "<16ms",
    "<66ms", "<262ms", "<1s",   "<4s",   "<17s",   "<67s", "<268s", "longer"};

double freed(const ProfileSite& site) {
    return std::accumulate(site.lifetimes.begin(), site.lifetimes.end(), 0.0);
}

std::string time_text(std::uint64_t unix_ns) {
    const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
    std::tm local{};
    char text[32] = "?";
    if (localtime_r(&seconds, &local) != nullptr) {
        std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &local);
    }
    return text;
}

/// Samples are rarer than requested where they would take too much time.
std::string distance_text(const HeapProfile& profile, Sizes sizes) {
    const std::string requested = format_size(profile.interval, sizes);
    const std::string used = format_size(profile.mean_distance, sizes);
    if (profile.mean_distance <= profile.interval || used == requested) {
        return "one sample per " + requested;
    }
    return fmt::format("one sample per {} ({} requested)", used, requested);
}

std::string headline(const NamedProfile& named, Sizes sizes) {
    const HeapProfile& profile = named.profile;
    std::string text =
        fmt::format("process {} ({}): ", profile.process, printable(profile.process_name));
    if (profile.sites.empty()) {
        text += "no allocation has been sampled yet";
    } else {
        text += fmt::format("{} live", format_size(named.total(Value::live), sizes));
    }
    if (profile.peak_unix_ns != 0) {
        text += fmt::format(", peak {} at {}", format_size(profile.peak_bytes, sizes),
                            time_text(profile.peak_unix_ns));
    }
    if (!profile.sites.empty()) text += "; " + counted(profile.sites.size(), "site");
    if (profile.interval != 0) text += ", " + distance_text(profile, sizes);
    return text + '\n';
}

std::vector<Cell> cells_of(const NamedProfile& named, const ProfileSite& site, Sizes sizes) {
    return {size_cell(site.live_bytes, sizes),
            count_cell(blocks_of(site, Value::live)),
            size_cell(site.peak_bytes, sizes),
            size_cell(site.allocated_bytes, sizes),
            part_cell(bytes_of(site, named.value), named.total(named.value)),
            line_cell(named, site)};
}

std::vector<std::string> value_lines(const NamedProfile& named, const TextOptions& options) {
    Table table;
    table.columns = {{"live"},
                     {"blocks"},
                     {"peak"},
                     {"allocated"},
                     {fmt::format("part of {}", name_of(named.value))},
                     {"allocated at", Side::left}};
    for (const ProfileSite& site : named.profile.sites) {
        if (table.rows.size() == options.max_rows) break;
        table.rows.push_back(cells_of(named, site, options.sizes));
    }
    return lay_out(table, any_width);
}

constexpr std::uint64_t least = 1024;
constexpr std::uint64_t largest = std::uint64_t{1} << 40;  // see set_profile_interval
constexpr std::uint64_t usual = std::uint64_t{512} << 10;  // TENSORPOOL_PROFILE=on
constexpr std::chrono::seconds patience{3};

std::string text_of(std::uint64_t interval) {
    if (interval == 0) return "samples no allocation";
    if (interval == 1) return "samples every allocation";
    return fmt::format("samples one allocation in {} on average", format_size(interval));
}

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

std::vector<std::string> lifetime_lines(const NamedProfile& named, std::size_t max_rows) {
    const std::vector<ProfileSite>& sites = named.profile.sites;
    const std::size_t rows = std::min(max_rows, sites.size());
    Table table;
    table.columns = {{"freed"}};
    table.rows.resize(rows);
    for (std::size_t i = 0; i < rows; ++i) table.rows[i] = {count_cell(freed(sites[i]))};
    for (std::size_t column = 0; column < titles.size(); ++column) {
        double all = 0;
        for (std::size_t i = 0; i < rows; ++i) all += sites[i].lifetimes[column];
        if (all == 0) continue;
        table.columns.push_back({titles[column]});
        for (std::size_t i = 0; i < rows; ++i) {
            table.rows[i].push_back(count_cell(sites[i].lifetimes[column]));
        }
    }
    table.columns.push_back({"allocated at", Side::left});
    for (std::size_t i = 0; i < rows; ++i) {
        table.rows[i].push_back(line_cell(named, sites[i]));
    }
    return lay_out(table, any_width);
}

std::vector<std::string> notes_of(const HeapProfile& profile) {
    std::vector<std::string> notes;
    if (profile.interval == 0) {
        notes.emplace_back(
            "sampling is off; turn it on with tensorpool profile --interval 512KiB, or "
            "TENSORPOOL_PROFILE=512KiB in the environment of the process");
    }
    if (profile.lost_samples != 0) {
        notes.push_back(counted(profile.lost_samples, "sample") +
                        " could not be taken, because there was no room");
    }
    return notes;
}

std::string to_text(const NamedProfile& profile, const TextOptions& options) {
    std::string text = headline(profile, options.sizes);
    for (const std::string& note : notes_of(profile.profile)) text += note + '\n';
    if (profile.profile.sites.empty()) return text;
    const NamedProfile named = options.stacks ? profile : sum_by_line(profile);
    const std::vector<ProfileSite>& sites = named.profile.sites;
    const std::vector<std::string> lines =
        options.lifetimes ? lifetime_lines(named, options.max_rows) : value_lines(named, options);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        text += lines[i] + '\n';
        if (options.stacks && i > 0) text += stack_text(named, sites[i - 1]);
    }
    const std::size_t left_out = sites.size() - (lines.size() - 1);
    if (left_out != 0) {
        text += counted(left_out, options.stacks ? "more site" : "more line") + " (--top)\n";
    }
    return text;
}

std::optional<std::uint64_t> parse_interval(std::string_view text) {
    if (text == "off") return 0;
    if (text == "all") return 1;
    const auto bytes = parse_size(text);
    return bytes && *bytes >= least && *bytes <= largest ? bytes : std::nullopt;
}

std::string problem_of_interval(const std::string& text) {
    if (parse_interval(text)) return "";
    return fmt::format("found '{}'; expected off, all, or a size from 1KiB to 1TiB, such as 64KiB",
                       printable(text));
}

std::string change_interval(StatisticsReader& process, std::uint64_t bytes) {
    request_profile_interval(process.process(), bytes);
    std::uint64_t found = 0;
    const bool has_changed = wait_for_answer(process, patience, [&] {
        found = process.heap_profile().interval;
        return found == bytes;
    });
    if (has_changed) return fmt::format("process {} {} now", process.process(), text_of(bytes));
    throw CommandError(
        finding, fmt::format("process {} still {}: none of its threads took a slow path of a pool, "
                             "for example for a large block; it will change when one does",
                             process.process(), text_of(found)));
}

std::string turn_on(StatisticsReader& process) {
    return fmt::format(
        "sampling was off; {}, each thread within its next 64 MiB of allocations; what it "
        "allocated before is unknown",
        change_interval(process, usual));
}

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
