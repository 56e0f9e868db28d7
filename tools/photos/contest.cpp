#include "contest.hpp"

#include <cstdio>
#include <map>
#include <set>
#include <stdexcept>

#include "contender.hpp"
#include "pictures.hpp"
#include "progress.hpp"
#include "result_text.hpp"
#include "run.hpp"
#include "same_files.hpp"

namespace tensorpool::photos {
namespace {

namespace fs = std::filesystem;

void refuse_to_replace(const std::vector<Picture>& pictures, const fs::path& folder) {
    for (const Picture& picture : pictures) {
        std::error_code none;
        if (!fs::equivalent(picture.file, folder / picture.result, none)) continue;
        throw std::runtime_error(picture.file.string() +
                                 ": lies where its result would be written; name another --output");
    }
}

class Contest {
public:
    explicit Contest(const Options& options)
        : options_(options), files_(find_pictures(options.pictures)),
          pictures_(with_result_names(files_)), contenders_(find_contenders()),
          runs_(contenders_.size()), progress_(stdout) {
        for (const Contender& contender : contenders_) {
            refuse_to_replace(pictures_, folder_of(contender, options_));
        }
    }

    int hold();

private:
    void introduce();
    void run_round(int round);
    void run_one(int round, std::size_t contender);
    void complain_of_failures(const Contender& contender, const Run& run);
    void compare_results();
    void print_result();
    std::vector<Row> rows() const;
    std::string work_done() const;

    const Options& options_;
    std::vector<fs::path> files_;
    std::vector<Picture> pictures_;
    std::vector<Contender> contenders_;
    std::vector<std::vector<Run>> runs_;  // of each contender
    std::set<std::string> complaints_;    // told already
    bool differ_ = false;
    Progress progress_;
};

void Contest::introduce() {
    std::string names;
    for (const Contender& contender : contenders_) names += ", " + contender.name;
    progress_.stay(std::to_string(pictures_.size()) +
                   (pictures_.size() == 1 ? " picture, " : " pictures, ") +
                   std::to_string(options_.rounds) + (options_.rounds == 1 ? " round" : " rounds") +
                   ", with memory from" + names.substr(1));
    if (contenders_.size() < 3) {
        progress_.stay(std::string("tcmalloc is left out: ") + tcmalloc_library +
                       " cannot be loaded here (Debian package " + tcmalloc_package + ")");
    }
    progress_.stay("");
}

/// Each round begins with another contender, so that none profits from its place.
void Contest::run_round(int round) {
    for (std::size_t turn = 0; turn < contenders_.size(); ++turn) {
        run_one(round, (static_cast<std::size_t>(round) + turn) % contenders_.size());
    }
    compare_results();
}

void Contest::run_one(int round, std::size_t number) {
    const Contender& contender = contenders_[number];
    char place[64];
    std::snprintf(place, sizeof place, "  round %-2d  %-11s", round + 1, contender.name.c_str());
    const auto show = [&, ended = std::size_t{0}](std::size_t picture) mutable {
        progress_.pass(place + std::to_string(++ended) + " of " + std::to_string(files_.size()) +
                       "  " + files_[picture].filename().string());
    };
    progress_.pass(place + std::string("0 of ") + std::to_string(files_.size()));
    Run run = photos::run(contender, files_, options_, show);

    char took[80];
    std::snprintf(took, sizeof took, "%8.2f s CPU  %12s page faults", run.measured.cpu_seconds,
                  with_commas(run.measured.page_faults).c_str());
    progress_.stay(std::string(place) + took);
    complain_of_failures(contender, run);
    runs_[number].push_back(std::move(run));
}

void Contest::complain_of_failures(const Contender& contender, const Run& run) {
    for (std::size_t i = 0; i < files_.size(); ++i) {
        const Outcome& outcome = run.outcomes[i];
        const std::string text = "tensorpool_photos: " + files_[i].string() + ": " + outcome.reason;
        if (outcome.done || !complaints_.insert(text).second) continue;
        progress_.complain(text + " (first seen with memory from " + contender.name + ")");
    }
}

void Contest::compare_results() {
    for (std::size_t i = 0; i < pictures_.size(); ++i) {
        for (std::size_t c = 1; c < contenders_.size(); ++c) {
            if (!runs_[0].back().outcomes[i].done || !runs_[c].back().outcomes[i].done) continue;
            const fs::path first = folder_of(contenders_[0], options_) / pictures_[i].result;
            const fs::path other = folder_of(contenders_[c], options_) / pictures_[i].result;
            if (same_files(first, other)) continue;
            differ_ = true;
            progress_.complain("tensorpool_photos: " + other.string() + ": differs from " +
                               first.string() + ", expected the same bytes");
        }
    }
}

std::vector<Row> Contest::rows() const {
    std::vector<Row> rows;
    for (std::size_t c = 0; c < contenders_.size(); ++c) {
        std::vector<Measurement> measured;
        for (const Run& run : runs_[c]) measured.push_back(run.measured);
        rows.push_back({contenders_[c].name, median(measured)});
    }
    return rows;
}

std::string Contest::work_done() const {
    std::uint64_t pixels = 0, done = 0;
    for (const Outcome& outcome : runs_.back().back().outcomes) {
        pixels += outcome.pixels;
        done += outcome.done ? 1 : 0;
    }
    char text[128];
    std::snprintf(text, sizeof text, "%llu of %zu pictures, %.1f megapixels; median of %d, ratio to malloc",
                  static_cast<unsigned long long>(done), pictures_.size(),
                  static_cast<double>(pixels) * 1e-6, options_.rounds);
    return text;
}

void Contest::print_result() {
    const std::vector<Row> measured = rows();
    std::printf("\n%s\n\n%s\n", work_done().c_str(), table(measured).c_str());
    std::printf("The pool's own report:\n\n%s\n", runs_.back().back().report.c_str());
    if (!differ_) {
        std::printf("The results are the same bit for bit; they lie in\n%s.\n\n", options_.output.c_str());
    }
    std::printf("%s\n", verdict(measured.back().measured, measured.front().measured).c_str());
}

int Contest::hold() {
    introduce();
    for (int round = 0; round < options_.rounds; ++round) run_round(round);
    print_result();
    return complaints_.empty() && !differ_ ? 0 : 1;
}

}  // namespace

int hold_contest(const Options& options) { return Contest(options).hold(); }

}  // namespace tensorpool::photos
