#include "contest/contest.hpp"

#include <algorithm>
#include <cstdio>
#include <set>
#include <stdexcept>
#include <utility>

#include "contest/compared_allocator.hpp"
#include "contest/progress.hpp"
#include "contest/result_text.hpp"
#include "contest/same_files.hpp"
#include "contest/summary.hpp"
#include "pictures.hpp"

namespace tensorpool::photos {
namespace {

namespace fs = std::filesystem;

void refuse_to_replace(const std::vector<Picture>& pictures, const fs::path& folder) {
    for (const Picture& picture : pictures) {
        std::error_code none;
        if (!fs::equivalent(picture.file, folder / picture.result, none)) continue;
        throw std::runtime_error(picture.file.string() +
                                 ": would be overwritten by its result; choose another --output");
    }
}

class Contest {
public:
    explicit Contest(const Options& options)
        : options_(options),
          files_(find_pictures(options.pictures)),
          pictures_(with_result_names(files_)),
          progress_(stdout) {
        for (const ComparedAllocator& allocator : find_allocators()) {
            refuse_to_replace(pictures_, folder_of(allocator, options_));
            series_.push_back({allocator, {}});
        }
    }

    int hold();

private:
    void introduce();
    void run_round(int round);
    void run_one(int round, Series& series);
    void complain_of_failures(const ComparedAllocator& allocator, const Run& run);
    void compare_results();
    void compare(const Series& series, std::size_t picture);

    const Options& options_;
    std::vector<fs::path> files_;
    std::vector<Picture> pictures_;
    std::vector<Series> series_;
    std::set<std::string> complaints_;  // already printed
    bool differ_ = false;
    Progress progress_;
};

void Contest::introduce() {
    std::string names;
    for (const Series& series : series_) names += ", " + series.allocator.name;
    progress_.stay(std::to_string(pictures_.size()) +
                   (pictures_.size() == 1 ? " picture, " : " pictures, ") +
                   std::to_string(options_.rounds) + (options_.rounds == 1 ? " round" : " rounds") +
                   ", with memory from" + names.substr(1));
    const bool has_tcmalloc = std::ranges::any_of(
        series_, [](const Series& series) { return !series.allocator.preload.empty(); });
    if (!has_tcmalloc) {
        progress_.stay(std::string("tcmalloc is not compared: ") + tcmalloc_library +
                       " cannot be loaded here (Debian package " + tcmalloc_package + ")");
    }
    progress_.stay("");
}

/// Each round begins with another allocator, so that none profits from its position.
void Contest::run_round(int round) {
    for (std::size_t turn = 0; turn < series_.size(); ++turn) {
        run_one(round, series_[(static_cast<std::size_t>(round) + turn) % series_.size()]);
    }
    compare_results();
}

void Contest::run_one(int round, Series& series) {
    const ComparedAllocator& allocator = series.allocator;
    char label[64];
    std::snprintf(label, sizeof label, "  round %-2d  %-11s", round + 1, allocator.name.c_str());
    const auto show = [&, ended = std::size_t{0}](std::size_t picture) mutable {
        progress_.pass(label + std::to_string(++ended) + " of " + std::to_string(files_.size()) +
                       "  " + files_[picture].filename().string());
    };
    progress_.pass(label + std::string("0 of ") + std::to_string(files_.size()));
    Run run = photos::run(allocator, files_, options_, show);

    char took[80];
    std::snprintf(took, sizeof took, "%8.2f s CPU  %12s page faults", run.measured.cpu_seconds,
                  with_commas(run.measured.page_faults).c_str());
    progress_.stay(std::string(label) + took);
    complain_of_failures(allocator, run);
    series.runs.push_back(std::move(run));
}

void Contest::complain_of_failures(const ComparedAllocator& allocator, const Run& run) {
    for (std::size_t i = 0; i < files_.size(); ++i) {
        const Outcome& outcome = run.outcomes[i];
        const std::string text = "tensorpool_photos: " + files_[i].string() + ": " + outcome.reason;
        if (outcome.done || !complaints_.insert(text).second) continue;
        progress_.complain(text + " (first seen with memory from " + allocator.name + ")");
    }
}

void Contest::compare_results() {
    for (const Series& series : series_) {
        for (std::size_t i = 0; i < pictures_.size(); ++i) compare(series, i);
    }
}

void Contest::compare(const Series& series, std::size_t picture) {
    const Series& malloc = series_.front();
    if (!malloc.runs.back().outcomes[picture].done || !series.runs.back().outcomes[picture].done)
        return;
    const fs::path expected = folder_of(malloc.allocator, options_) / pictures_[picture].result;
    const fs::path result = folder_of(series.allocator, options_) / pictures_[picture].result;
    if (same_files(expected, result)) return;
    differ_ = true;
    progress_.complain("tensorpool_photos: " + result.string() + ": differs from " +
                       expected.string() + ", expected the same bytes");
}

int Contest::hold() {
    introduce();
    for (int round = 0; round < options_.rounds; ++round) run_round(round);
    std::fputs(summary(series_, options_, differ_).c_str(), stdout);
    return complaints_.empty() && !differ_ ? 0 : 1;
}

}  // namespace

int hold_contest(const Options& options) {
    return Contest(options).hold();
}

}  // namespace tensorpool::photos
