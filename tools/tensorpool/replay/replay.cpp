#include "common/options.hpp"

#include <tensorpool/system_memory.hpp>

#include "common/output.hpp"
#include "replay/report.hpp"

namespace tensorpool::command {
namespace replay {
namespace {

struct ReplayOptions {
    std::string file;
    std::vector<std::string> against = {"none",     "pool",           "glibc",   "tcmalloc",
                                        "jemalloc", "jemalloc-tuned", "mimalloc"};
    std::vector<std::string> pool_options;
    Touch touch = Touch::first;
    std::uint64_t process = 0;
    unsigned rounds = 5;
};

/// By their numbers.
constexpr std::pair<const char*, Touch> touches[] = {
    {"none", Touch::none}, {"first", Touch::first}, {"all", Touch::all}, {"check", Touch::check}};

/// Returns the allocators that are available, and reports the others on stderr.
std::vector<ReplayAllocator> present(const ReplayOptions& options) {
    std::vector<ReplayAllocator> allocators;
    for (ReplayAllocator& allocator : allocators_of(options.against, options.pool_options)) {
        const std::string reason = why_unavailable(allocator);
        if (reason.empty()) {
            allocators.push_back(std::move(allocator));
        } else {
            print_error(fmt::format("tensorpool: {} is left out: {}", allocator.name, reason));
        }
    }
    if (!allocators.empty()) return allocators;
    throw CommandError(finding, "no allocator is available: nothing was replayed");
}

void check_memory(const PlanStatistics& statistics, Touch touch) {
    const std::uint64_t available = get_available_memory();
    if (touch == Touch::none || statistics.max_alive_bytes <= available) return;
    throw CommandError(
        finding, fmt::format("the recording needs {} at once, but only {} are available; "
                             "--touch none replays the calls without the memory",
                             format_size(statistics.max_alive_bytes), format_size(available)));
}

Subject describe(const ReplayOptions& options, const trace::Recording& recording,
                 std::uint32_t process, const PlanStatistics& statistics) {
    const trace::RecordedProcess& recorded = recording.processes[process];
    const char* const touch = touches[static_cast<std::size_t>(options.touch)].first;
    return {options.file,     recorded.number, recorded.name, recording.processes.size(),
            recorded.dropped, statistics,      touch,         recording.cut_bytes};
}

/// Compiles the plan. The recording, which may be large, is destroyed before the allocators run.
std::pair<Subject, Plan> prepare(const ReplayOptions& options,
                                 const std::vector<ReplayAllocator>& allocators) {
    const bool needs_offsets = std::ranges::any_of(allocators, [](const ReplayAllocator& one) {
        return one.calls == Calls::floor || one.calls == Calls::plan;
    });
    const trace::Recording recording = trace::read_recording(options.file);
    const std::uint32_t process = choose_process(recording, options.process);
    Plan plan = compile(recording, process, needs_offsets ? Offsets::yes : Offsets::no);
    Subject subject = describe(options, recording, process, plan.statistics);
    return {std::move(subject), std::move(plan)};
}

int replay(const Settings& settings, const ReplayOptions& options) {
    const std::vector<ReplayAllocator> allocators = present(options);
    auto [subject, plan] = prepare(options, allocators);
    check_memory(plan.statistics, options.touch);
    const Descriptor file = file_of(plan);
    plan = {};
    const std::vector<Result> results =
        play_rounds(allocators, options.rounds, options.touch, file.number(), subject.statistics);
    print_line(settings.json ? report_json(subject, results)
                             : report_text(subject, results, sizes_of(settings)));
    return success;
}

void add_options(CLI::App& command, Settings& settings, ReplayOptions& options) {
    add_file(command, options.file, "A trace, or an RMM log (CSV)");
    add_option(command, "--against NAMES", options.against,
               "Allocators, separated by commas (all but plan): " + allocator_names())
        ->delimiter(',');
    add_option(command, "--option NAME=VALUE", options.pool_options,
               "An option of the pool, as retain=512MiB; repeatable");
    add_option(command, "--touch HOW", options.touch,
               "Which bytes of each new block are written: first, one in each page (the default); "
               "all, every byte; none; check, every byte, verified when it is freed")
        ->transform(CLI::CheckedTransformer(
            std::vector<std::pair<std::string, Touch>>(std::begin(touches), std::end(touches))));
    add_option(command, "--process PID", options.process,
               "The process to replay (the one with most bytes)", CLI::PositiveNumber);
    add_option(command, "--rounds N", options.rounds, "Rounds, each with all allocators (5)",
               CLI::Range(1, 1000));
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool replay train.tpt\n"
    "  tensorpool replay train.tpt --against pool,jemalloc --rounds 11\n"
    "  tensorpool replay train.tpt --against pool,pool:retain_ms=0:huge_pages=auto";

constexpr const char* details =
    "Each allocator replays the calls of one process in a process of its own, on as many threads "
    "as were recorded. Each thread makes its calls in the recorded order, as fast as possible. A "
    "free waits for its allocation. A thread also waits until the others are within a sixteenth "
    "of the maximum bytes alive at once, or 4 MiB, so that about the same blocks are alive at "
    "once as in the recording. The program's work between its calls is left out, except for "
    "touching its blocks. Blocks of arenas and scratches are replayed as blocks of the allocator; "
    "device memory is left out. Blocks allocated before the recording are allocated before the "
    "clock runs; blocks that were never freed are not freed. Requests with an alignment of at "
    "most 64 bytes are made by malloc, as programs do.\n\n"
    "TIME is the time from the first call to the last, CPU the user and system time of all "
    "threads, SYSTEM the system's part of that, FAULTS the minor page faults. PEAK is the maximum "
    "resident memory (VmHWM, exact to a few hundred KiB) less that before the first block, and "
    "WASTE is PEAK divided by the maximum bytes alive at once. Columns ending in POOL are the "
    "allocator's value divided by the pool's in the same round: above 1 the pool is better.\n\n"
    "Allocators: pool is the process's global pool; glibc, tcmalloc, jemalloc and mimalloc serve "
    "malloc, loaded by LD_PRELOAD, which is checked; jemalloc-tuned keeps freed memory "
    "(dirty_decay_ms:-1, muzzy_decay_ms:-1, oversize_threshold:0). none is no allocator: it "
    "replays the same calls with addresses that were computed before, so it shows the cost of the "
    "replay itself, which no allocator can go below. The addresses are those of a plan as "
    "`tensorpool plan` makes it, within a second, in one mapping as large as the plan's peak, each "
    "block aligned to 64 bytes as in the pool. plan also moves the contents of resized blocks. It "
    "shows what a program can reach that knows its blocks in advance. With several threads, the "
    "offsets are valid only in the recorded order. Environment "
    "variables that tune any allocator are not passed on. An allocator that is not installed is "
    "reported with its Debian package.\n\n"
    "Options of the pool: ";

}  // namespace
}  // namespace replay

void add_replay(CLI::App& app, Settings& settings) {
    add_subcommand(
        app, settings,
        {"replay", "Replay a recording with several allocators", replay::footer,
         replay::details + replay::option_names() +
             ". They are the same as in the environment; retain is TENSORPOOL_RETAIN_BYTES.\n"},
        replay::replay, replay::add_options);
}

}  // namespace tensorpool::command
