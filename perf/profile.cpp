/// Question: what does the heap profile cost, and how near is it to the truth?
///
/// The floor of a pair is the same pair without samples: both run the same code. The floor of the
/// error is that of Poisson sampling: a site of n bytes, sampled at a mean distance of m bytes, has
/// a standard deviation of at most sqrt(m * n).

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <tensorpool/heap_profile.hpp>
#include <tensorpool/memory_pool.hpp>
#include <tensorpool/statistics_reader.hpp>

#include "support/barrier.hpp"
#include "support/interval.hpp"
#include "support/program.hpp"
#include "support/random.hpp"
#include "support/turns.hpp"

namespace {

using perf::text;
using tensorpool::HeapProfile;
using tensorpool::MemoryPool;
using tensorpool::ProfileSite;
using tensorpool::StatisticsReader;

constexpr std::size_t kib = std::size_t{1} << 10;
constexpr std::size_t mib = std::size_t{1} << 20;
constexpr std::size_t usual_interval = 512 * kib;

/// Pairs of calls with `touched` bytes written in between. With and without samples they use the
/// same pool, because where its memory lies can change their time by more than samples do.
class Pairs {
public:
    Pairs(std::size_t bytes, std::size_t touched, std::size_t count)
        : bytes_(bytes), touched_(touched), count_(count) {}

    /// Returns the nanoseconds of a pair. The first half of the calls, which are not measured,
    /// takes what a thread may spend at once, and the bytes after which it sees the interval.
    double operator()(std::size_t interval) {
        tensorpool::set_profile_interval(interval);
        run(std::max(count_, look_again_bytes / bytes_));
        const double seconds = perf::cpu_seconds_of([&] { run(count_); });
        return seconds * 1e9 / static_cast<double>(count_);
    }

private:
    void run(std::size_t times) {
        for (std::size_t i = 0; i < times; ++i) {
            void* block = pool_.allocate(bytes_);
            if (touched_ != 0) std::memset(block, 1, touched_);
            perf::opaque(block);
            pool_.deallocate(block, bytes_);
        }
    }

    static constexpr std::size_t look_again_bytes = 64 * mib;

    MemoryPool pool_;
    std::size_t bytes_;
    std::size_t touched_;
    std::size_t count_;
};

void measure_pairs(const perf::Options& options, perf::Report& report) {
    std::vector<perf::Cells> rows = {
        {"ns of a pair", "floor: no samples", "sampled", "ratio", "95 % interval"}};
    struct Case {
        std::size_t bytes;
        std::size_t touched;
    };
    for (const auto& [bytes, touched] :
         {Case{64, 0}, Case{64, 64}, Case{kib, 0}, Case{kib, kib}, Case{16 * kib, 0},
          Case{16 * kib, 16 * kib}, Case{mib, 0}, Case{mib, mib}, Case{16 * mib, mib}}) {
        const std::size_t work = touched / 30 + 5;  // ns, roughly
        const std::size_t count = options.quick ? 100 : 100'000'000 / work;
        Pairs pairs(bytes, touched, count);
        const perf::Turns turns(options.rounds,
                                {[&] { return pairs(0); }, [&] { return pairs(usual_interval); }});
        const perf::Interval interval = perf::interval_of_median(turns.ratios(1, 0));
        const double ratio = turns.ratio(1, 0);
        rows.push_back({std::to_string(bytes) + " B, " + std::to_string(touched) + " B written",
                        text(turns.median(0), 1), text(turns.median(1), 1),
                        options.quick ? text(ratio, 4) : report.judge(ratio, 1.005, 4),
                        text(interval.low, 4) + " to " + text(interval.high, 4)});
    }
    report.print("Cost", rows);
}

constexpr std::size_t site_count = 12;

/// A program with twelve sites, each of which is a function of its own.
class Program {
    template <std::size_t site>
    [[gnu::noinline]] void* allocate_at(std::size_t bytes) {
        void* block = pool_.allocate(bytes);
        // Ten writes of each byte: 1 ns for each, as a program that works on its tensors needs.
        for (int i = 0; i < 10; ++i) {
            std::memset(block, static_cast<int>(site) + i, bytes);
            perf::opaque(block);
        }
        return block;
    }
    template <std::size_t... sites>
    static constexpr auto functions(std::index_sequence<sites...>) {
        return std::array{&Program::allocate_at<sites>...};
    }

public:
    explicit Program(std::uint64_t seed) : generator_(seed) {}
    ~Program() {
        for (auto& blocks : alive_) {
            for (const auto& [block, bytes] : blocks) pool_.deallocate(block, bytes);
        }
    }
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    void run(int steps) {
        for (int step = 0; step < steps; ++step) {
            const std::size_t site = below(site_count);
            allocate(site);
            // Some sites keep almost all blocks, others a part.
            if (below(site_count) > site / 2) free_one(site);
        }
    }
    /// Allocates a block at this site.
    void allocate(std::size_t site) {
        static constexpr auto all = functions(std::make_index_sequence<site_count>());
        const std::size_t largest = std::size_t{256} << site;  // up to 512 KiB
        const std::size_t bytes = largest / 2 + below(largest / 2) + 1;
        alive_[site].emplace_back((this->*all[site])(bytes), bytes);
        live_[site] += bytes;
    }
    std::uint64_t live_bytes(std::size_t site) const { return live_[site]; }

private:
    std::size_t below(std::size_t count) { return generator_() % count; }
    void free_one(std::size_t site) {
        auto& blocks = alive_[site];
        std::swap(blocks[below(blocks.size())], blocks.back());
        pool_.deallocate(blocks.back().first, blocks.back().second);
        live_[site] -= blocks.back().second;
        blocks.pop_back();
    }

    perf::Generator generator_;
    MemoryPool pool_;
    std::array<std::vector<std::pair<void*, std::size_t>>, site_count> alive_;
    std::array<std::uint64_t, site_count> live_ = {};
};

HeapProfile profile() {
    return StatisticsReader::attach(static_cast<std::uint64_t>(getpid())).heap_profile();
}

using Frames = std::set<std::pair<std::string, std::uint64_t>>;

Frames frames_of(const HeapProfile& profile, const ProfileSite& site) {
    Frames frames;
    for (const std::uint32_t frame : site.stack) {
        frames.emplace(profile.frames[frame].module, profile.frames[frame].offset);
    }
    return frames;
}

/// Which site of the program a stack belongs to: the one whose own frame it contains.
class Sites {
public:
    /// Samples an allocation of each site. What only one of their stacks contains is its own.
    Sites() {
        tensorpool::set_profile_interval(1);
        std::array<Frames, site_count> all;
        for (std::size_t site = 0; site < site_count; ++site) {
            Program program(site);
            program.allocate(site);
            const HeapProfile now = profile();
            for (const ProfileSite& one : now.sites) {
                if (one.live_bytes != 0) all[site] = frames_of(now, one);
            }
        }
        for (std::size_t site = 0; site < site_count; ++site) {
            for (const auto& frame : all[site]) {
                const auto has = [&](const Frames& frames) { return frames.contains(frame); };
                if (std::ranges::count_if(all, has) == 1) own_[site].insert(frame);
            }
        }
    }
    /// Returns the live bytes of each site by the samples.
    std::array<double, site_count> estimates() const {
        std::array<double, site_count> bytes = {};
        const HeapProfile now = profile();
        for (const ProfileSite& one : now.sites) {
            const Frames frames = frames_of(now, one);
            for (std::size_t site = 0; site < site_count; ++site) {
                const auto has = [&](const auto& frame) { return frames.contains(frame); };
                if (std::ranges::any_of(own_[site], has))
                    bytes[site] += static_cast<double>(one.live_bytes);
            }
        }
        return bytes;
    }

private:
    std::array<Frames, site_count> own_;
};

void measure_error(const perf::Options& options, perf::Report& report) {
    const int seeds = options.quick ? 2 : 20;
    const int steps = options.quick ? 500 : 40'000;
    const Sites sites;
    tensorpool::set_profile_interval(usual_interval);
    struct Sum {
        double truth = 0;
        double estimate = 0;
        double allowed = 0;
        int within = 0;
        int judged = 0;
    };
    std::array<Sum, site_count> sums;
    for (int seed = 1; seed <= seeds; ++seed) {
        Program program(static_cast<std::uint64_t>(seed));
        program.run(steps);
        const auto estimates = sites.estimates();
        double heap = 0;
        for (std::size_t site = 0; site < site_count; ++site) {
            heap += static_cast<double>(program.live_bytes(site));
        }
        for (std::size_t site = 0; site < site_count; ++site) {
            const auto truth = static_cast<double>(program.live_bytes(site));
            if (truth < 0.02 * heap) continue;
            const double allowed = 3 * std::sqrt(usual_interval * truth) + 0.01 * truth;
            Sum& sum = sums[site];
            sum.truth += truth;
            sum.estimate += estimates[site];
            sum.allowed += allowed;
            sum.within += std::abs(estimates[site] - truth) <= allowed ? 1 : 0;
            ++sum.judged;
        }
    }
    std::vector<perf::Cells> rows = {{"site, of 2 % of the heap or more", "true MiB", "estimated",
                                      "allowed error", "seeds within it",
                                      "error of the mean / its bound"}};
    for (std::size_t site = 0; site < site_count; ++site) {
        const Sum& sum = sums[site];
        if (sum.judged == 0) continue;
        const double bound = sum.allowed / sum.judged / std::sqrt(sum.judged);
        const double error = std::abs(sum.estimate - sum.truth) / sum.judged / bound;
        const auto mean = [&](double of) { return text(of / sum.judged / mib, 1); };
        rows.push_back({std::to_string(256 << site) + " B", mean(sum.truth), mean(sum.estimate),
                        mean(sum.allowed),
                        std::to_string(sum.within) + " of " + std::to_string(sum.judged),
                        options.quick ? text(error) : report.judge(error, 1)});
    }
    report.print("Error", rows);
}

}  // namespace

int main(int argc, char** argv) {
    const perf::Options options = perf::read_options(argc, argv, 15);
    perf::Report report(options);
    measure_error(options, report);
    measure_pairs(options, report);
    return report.status();
}
