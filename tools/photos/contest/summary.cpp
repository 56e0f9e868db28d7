#include "contest/summary.hpp"

#include <algorithm>
#include <cstdio>

#include "contest/result_text.hpp"

namespace tensorpool::photos {
namespace {

Row median_row(const Series& series) {
    std::vector<Measurement> measured;
    for (const Run& run : series.runs) measured.push_back(run.measured);
    return {series.allocator.name, median(measured)};
}

bool same_pictures_done(const Run& one, const Run& other) {
    return std::ranges::equal(one.outcomes, other.outcomes, {}, &Outcome::done, &Outcome::done);
}

bool same_work(const std::vector<Series>& all) {
    const Run& first = all.front().runs.front();
    return std::ranges::all_of(all, [&](const Series& series) {
        return std::ranges::all_of(series.runs,
                                   [&](const Run& run) { return same_pictures_done(run, first); });
    });
}

std::size_t pictures_done(const Run& run) {
    return static_cast<std::size_t>(std::ranges::count(run.outcomes, true, &Outcome::done));
}

std::string work_done(const Series& malloc) {
    const Run& run = malloc.runs.back();
    double megapixels = 0;
    for (const Outcome& outcome : run.outcomes) {
        megapixels += static_cast<double>(outcome.pixels) * 1e-6;
    }
    char text[128];
    std::snprintf(text, sizeof text,
                  "%zu of %zu pictures, %.1f megapixels; median of %zu, ratio to malloc",
                  pictures_done(run), run.outcomes.size(), megapixels, malloc.runs.size());
    return text;
}

std::string comparison(const std::vector<Series>& all, bool results_differ) {
    if (results_differ) return "DIFFER, as reported above";
    if (!same_work(all)) return "that all produced are identical";
    return pictures_done(all.front().runs.front()) == 0 ? "are none" : "are identical";
}

const Series& series_of(const std::string& work, const std::vector<Series>& all) {
    return *std::ranges::find_if(all,
                                 [&](const Series& one) { return one.allocator.work == work; });
}

/// The memory report of the last run.
std::string report(const std::string& work, const std::vector<Series>& all) {
    return series_of(work, all).runs.back().report;
}

std::string conclusion(const std::vector<Series>& all) {
    if (!same_work(all)) {
        return "Savings cannot be stated: not all allocators developed the same pictures.";
    }
    if (pictures_done(all.front().runs.front()) == 0) {
        return "Savings cannot be stated: no picture was developed.";
    }
    return verdict(median_row(series_of("pool", all)).measured, median_row(all.front()).measured);
}

}  // namespace

std::string summary(const std::vector<Series>& all, const Options& options, bool results_differ) {
    std::vector<Row> rows;
    for (const Series& series : all) rows.push_back(median_row(series));
    std::string text = '\n' + work_done(all.front()) + "\n\n" + table(rows);
    if (!options.frugal) {
        text +=
            "\nThe Context's denoise and boost_detail hold less memory at once than those of the "
            "others;\n"
            "with --frugal, all use the same.\n";
    }
    text += "\nThe pool's own report:\n\n" + report("pool", all);
    text += "\nScratch memory of each operator in the Context, and totals of the Context:\n\n" +
            report("context", all);
    text += "\nThe results " + comparison(all, results_differ) + "; they are in\n" +
            options.output + ".\n";
    text += '\n' + conclusion(all) + '\n';
    return text;
}

}  // namespace tensorpool::photos
