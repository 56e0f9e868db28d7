#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/cells.hpp"
#include "common/table.hpp"
#include "leaks/report.hpp"
#include "formats/profile/line_cell.hpp"
#include "formats/profile/short_stack.hpp"

namespace tensorpool::command::leaks {
namespace {

/// Wide enough for every row.
constexpr std::size_t width = 400;

std::string count_text(std::uint64_t count, const char* what) {
    return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

/// Rounds to whole bytes. The process may have written any value.
std::uint64_t whole(double bytes) {
    return static_cast<std::uint64_t>(std::clamp(std::round(bytes), 0.0, 0x1p62));
}

std::string headline(const Report& report, Sizes sizes) {
    const HeapProfile& profile = report.named.profile;
    std::string text =
        fmt::format("process {} ({}): {}", profile.process, printable(profile.process_name),
                    count_text(report.iterations, "iteration"));
    if (!report.pace.is_by_marks()) {
        text += fmt::format(" of {:g} s", report.pace.seconds);
    } else if (!report.pace.mark.empty()) {
        text += fmt::format(" by marks {}", printable(report.pace.mark));
    } else {
        text += " by marks";
    }
    text += fmt::format(" in {:.3g} s", report.seconds);
    if (report.profiles != report.iterations + 1) {
        text += fmt::format(", {} profiles", report.profiles);
    }
    return text +
           fmt::format(", one sample per {}\n",
                       format_size(std::max(profile.interval, profile.mean_distance), sizes));
}

std::string summary(const Report& report) {
    if (report.rows.empty()) {
        return fmt::format("none of {} grows", count_text(report.steady, "site"));
    }
    return fmt::format("{} of {} grow; {}", report.rows.size(),
                       count_text(report.rows.size() + report.steady, "site"),
                       count_text(report.leaks(), "leak"));
}

std::vector<Cell> cells_of(const Report& report, const Row& row, Sizes sizes) {
    return {{std::string(to_string(row.judged.verdict))},
            size_cell(whole(row.slope), sizes),
            {"+/- " + format_size(whole(row.slope_uncertainty), sizes)},
            size_cell(whole(row.judged.growth), sizes),
            size_cell(row.site.live_bytes, sizes),
            number_cell(row.oldest),
            number_cell(row.median_age),
            profile::line_cell(report.named, row.site)};
}

std::string stack_text(const Report& report, const Row& row) {
    std::string text;
    for (const std::string& call : profile::short_stack_of(report.named, row.site)) {
        text += "\n    " + call;
    }
    return text;
}

}  // namespace

std::string to_text(const Report& report, Sizes sizes) {
    std::string text = headline(report, sizes) + summary(report);
    if (report.rows.empty()) return text;
    Table table;
    table.columns = {{"verdict", Side::left},
                     {"per iteration"},
                     {"", Side::left},
                     {"growth"},
                     {"live"},
                     {"oldest"},
                     {"median age"},
                     {"allocated at", Side::left}};
    for (const Row& row : report.rows) table.rows.push_back(cells_of(report, row, sizes));
    const std::vector<std::string> lines = lay_out(table, width);
    for (std::size_t i = 0; i < lines.size(); ++i) {
        text += '\n' + lines[i];
        if (i == 0 || report.rows[i - 1].judged.verdict != Verdict::leak) continue;
        text += stack_text(report, report.rows[i - 1]);
    }
    return text;
}

}  // namespace tensorpool::command::leaks
