/// Question: what does each thing that can be on cost a program that never looks at it?
///
/// Each work runs in processes of its own, with the feature and without in turns. The floor is the
/// process without. tests/pool/default_costs_linux_test.cpp counts the instructions of the same
/// works. What the heap profile costs whole programs says `perf/workloads/compare --against
/// profiled,pool`.

#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "support/interval.hpp"
#include "support/program.hpp"
#include "support/turns.hpp"

#include "../tests/support/default_costs.hpp"

namespace {

using perf::text;
using tensorpool::testing::Feature;
using tensorpool::testing::Meter;
using tensorpool::testing::Sizes;
using tensorpool::testing::Work;

constexpr Sizes usual_sizes{.rounds = 1,
                            .pairs = 200'000,
                            .passes = 20,
                            .blocks = 1000,
                            .slots = 4096,
                            .warm_blocks = 10'000,
                            .threads = 64,
                            .pairs_of_thread = 20'000};
constexpr Sizes quick_sizes{.rounds = 1,
                            .pairs = 100,
                            .passes = 1,
                            .blocks = 100,
                            .slots = 64,
                            .warm_blocks = 1000,
                            .threads = 4,
                            .pairs_of_thread = 100};

double seconds_of(clockid_t clock) {
    timespec time = {};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

/// Sums the processor's time of the measuring thread; for threads, that of the process; for forks,
/// the time until the child has ended.
class TimeMeter : public Meter {
public:
    void begin() override { begun_ = seconds_of(CLOCK_THREAD_CPUTIME_ID); }
    void end() override { seconds_ += seconds_of(CLOCK_THREAD_CPUTIME_ID) - begun_; }
    void run_thread(const std::function<void()>& body) override {
        const double begun = seconds_of(CLOCK_PROCESS_CPUTIME_ID);
        std::thread(body).join();
        seconds_ += seconds_of(CLOCK_PROCESS_CPUTIME_ID) - begun;
    }
    void fork_once() override {
        seconds_ += perf::seconds_of([] {
            const pid_t child = fork();
            if (child == 0) _exit(0);
            waitpid(child, nullptr, 0);
        });
    }
    double seconds() const { return seconds_; }

private:
    double begun_ = 0;
    double seconds_ = 0;
};

/// Prints the microseconds of a work, done often enough for the clock.
int print_time(const Feature& feature, bool is_on, const Work& work, bool is_quick) {
    Sizes sizes = is_quick ? quick_sizes : usual_sizes;
    TimeMeter warm;
    do_work(feature, is_on, work, warm, sizes);
    if (!is_quick) {
        constexpr double enough = 0.01;
        sizes.rounds = 1 + static_cast<unsigned>(enough / (warm.seconds() + 1e-6));
    }
    TimeMeter meter;
    do_work(feature, false, work, meter, sizes);
    std::printf("%.9g\n", meter.seconds() * 1e6 / sizes.rounds);
    return 0;
}

/// Returns the microseconds of a work in a process of its own, which this program starts again.
double measure(const Feature& feature, bool is_on, const Work& work, const perf::Options& options) {
    const auto result = tensorpool::testing::run_program(
        "/proc/self/exe",
        {"--work", feature.name, is_on ? "on" : "off", work.name, options.quick ? "quick" : ""},
        is_on ? feature.on : feature.off);
    if (result.exit_code != 0 || result.output.empty()) {
        std::fprintf(stderr, "defaults_perf: %s, %s: status %d: %s\n", feature.name, work.name,
                     result.exit_code, result.errors.c_str());
        std::exit(1);
    }
    return std::strtod(result.output.c_str(), nullptr);
}

void compare(const Feature& feature, const perf::Options& options, perf::Report& report) {
    std::vector<perf::Cells> rows = {{"µs", "off", "on", "ratio", "95 % interval"}};
    for (const Work& work : tensorpool::testing::all_works) {
        const perf::Turns turns(options.rounds,
                                {[&] { return measure(feature, false, work, options); },
                                 [&] { return measure(feature, true, work, options); }},
                                false);
        const double ratio = turns.ratio(1, 0);
        const perf::Interval interval = perf::interval_of_median(turns.ratios(1, 0));
        rows.push_back({work.name, text(turns.median(0)), text(turns.median(1)),
                        options.quick ? text(ratio) : report.judge(ratio, 1.05, 3),
                        text(interval.low, 3) + " to " + text(interval.high, 3)});
    }
    report.print(std::string("defaults: ") + feature.name, rows);
}

void forget_variables() {
    std::vector<std::string> names;
    for (char** variable = environ; *variable != nullptr; ++variable) {
        const std::string_view text = *variable;
        if (text.starts_with("TENSORPOOL_")) names.emplace_back(text.substr(0, text.find('=')));
    }
    for (const std::string& name : names) unsetenv(name.c_str());
}

}  // namespace

int main(int argc, char** argv) {
    const std::vector<Feature> features = tensorpool::testing::all_features();
    if (argc == 6 && std::string_view(argv[1]) == "--work") {
        const Feature* const feature = tensorpool::testing::find_named(features, argv[2]);
        const Work* const work =
            tensorpool::testing::find_named(tensorpool::testing::all_works, argv[4]);
        if (feature == nullptr || work == nullptr) return 2;
        return print_time(*feature, std::string_view(argv[3]) == "on", *work,
                          std::string_view(argv[5]) == "quick");
    }
    const perf::Options options = perf::read_options(argc, argv, 21);
    perf::Report report(options);
    forget_variables();
    for (const Feature& feature : features) compare(feature, options, report);
    return report.status();
}
