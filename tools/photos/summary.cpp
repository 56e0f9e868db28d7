#include "summary.hpp"

#include <algorithm>
#include <cstdio>

#include "result_text.hpp"

namespace tensorpool::photos {
namespace {

Row median_row(const Series& series) {
    std::vector<Measurement> measured;
    for (const Run& run : series.runs) measured.push_back(run.measured);
    return {series.contender.name, median(measured)};
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
    if (results_differ) return "DIFFER, as told above";
    if (!same_work(all)) return "that all have are the same bit for bit";
    return pictures_done(all.front().runs.front()) == 0 ? "are none" : "are the same bit for bit";
}

std::string conclusion(const std::vector<Series>& all, const std::vector<Row>& rows) {
    if (!same_work(all)) {
        return "Nothing can be said of savings: not all allocators did the same pictures.";
    }
    if (pictures_done(all.front().runs.front()) == 0) {
        return "Nothing can be said of savings: no picture was developed.";
    }
    return verdict(rows.back().measured, rows.front().measured);
}

}  // namespace

std::string summary(const std::vector<Series>& all, const std::string& output,
                    bool results_differ) {
    std::vector<Row> rows;
    for (const Series& series : all) rows.push_back(median_row(series));
    std::string text = '\n' + work_done(all.front()) + "\n\n" + table(rows);
    text += "\nThe pool's own report:\n\n" + all.back().runs.back().report;
    text += "\nThe results " + comparison(all, results_differ) + "; they lie in\n" + output + ".\n";
    text += '\n' + conclusion(all, rows) + '\n';
    return text;
}

}  // namespace tensorpool::photos
