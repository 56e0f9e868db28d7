#include "subcommands.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "common/output.hpp"
#include "common/printable.hpp"
#include "doctor/machine.hpp"
#include "options.hpp"
#include "replay/contenders.hpp"
#include "replay/plan_compiler.hpp"
#include "replay/plan_file.hpp"
#include "replay/report.hpp"
#include "replay/rounds.hpp"

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

constexpr std::pair<const char*, Touch> touches[] = {
    {"none", Touch::none}, {"first", Touch::first}, {"all", Touch::all}, {"check", Touch::check}};

std::string name_of(Touch touch) {
    for (const auto& [name, value] : touches) {
        if (value == touch) return name;
    }
    return "";
}

/// Those that can be asked; the others are told.
std::vector<Contender> present(const ReplayOptions& options) {
    std::vector<Contender> contenders;
    for (Contender& contender : contenders_of(options.against, options.pool_options)) {
        const std::string hindrance = what_hinders(contender);
        if (hindrance.empty()) {
            contenders.push_back(std::move(contender));
        } else {
            fmt::print(stderr, "tensorpool: {} is left out: {}\n", contender.name, hindrance);
        }
    }
    if (!contenders.empty()) return contenders;
    throw CommandError(finding, "no contender is there: nothing was replayed");
}

void check_memory(const PlanFigures& figures, Touch touch) {
    const std::uint64_t available = examine_machine().available_bytes;
    if (touch == Touch::none || figures.max_alive_bytes <= available) return;
    throw CommandError(finding,
                       fmt::format("the recording holds {} at once, but only {} are available; "
                                   "--touch none replays the calls without the memory",
                                   format_size(figures.max_alive_bytes), format_size(available)));
}

Subject describe(const ReplayOptions& options, const trace::Recording& recording,
                 std::uint32_t process, const PlanFigures& figures) {
    const trace::RecordedProcess& recorded = recording.processes[process];
    return {options.file,     recorded.number, recorded.name,          recording.processes.size(),
            recorded.dropped, figures,         name_of(options.touch), recording.cut_bytes};
}

/// The recording itself, which may be large, has gone when the contenders begin.
std::pair<Subject, Plan> prepare(const ReplayOptions& options,
                                 const std::vector<Contender>& contenders) {
    const auto wanted_by = [&](Calls calls) {
        const bool is_there =
            std::ranges::find(contenders, calls, &Contender::calls) != contenders.end();
        return is_there ? Places::yes : Places::no;
    };
    const trace::Recording recording = trace::read_recording(options.file);
    const std::uint32_t process = choose_process(recording, options.process);
    Plan plan = compile(recording, process, wanted_by(Calls::floor), wanted_by(Calls::plan));
    Subject subject = describe(options, recording, process, plan.figures);
    return {std::move(subject), std::move(plan)};
}

int replay(const Settings& settings, const ReplayOptions& options) {
    const std::vector<Contender> contenders = present(options);
    auto [subject, plan] = prepare(options, contenders);
    check_memory(plan.figures, options.touch);
    const PlanFile file(plan);
    plan = {};
    const std::vector<Result> results =
        play_rounds(contenders, options.rounds, options.touch, file.descriptor(), subject.figures);
    print_line(settings.json ? report_json(subject, results)
                             : report_text(subject, results, sizes_of(settings)));
    return success;
}

}  // namespace
}  // namespace replay

CLI::App* add_replay(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("replay", "Play a recording to several allocators and compare");
    const auto options = std::make_shared<replay::ReplayOptions>();
    command->add_option("FILE", options->file, "A trace, or a log of RMM (CSV)")
        ->option_text("FILE")
        ->required();
    command
        ->add_option(
            "--against", options->against,
            "Whom to ask, with commas between (all but plan): " + replay::contender_names())
        ->option_text("WHO")
        ->delimiter(',');
    command
        ->add_option("--option", options->pool_options,
                     "An option of the pool, as retain=512MiB; again for more")
        ->option_text("NAME=VALUE");
    command
        ->add_option("--touch", options->touch,
                     "What is written into each new block: first, a byte in each page that it lies "
                     "on (the default); all, every byte; none; check, every byte, looked at when "
                     "it is freed")
        ->option_text("HOW")
        ->transform(CLI::CheckedTransformer(std::vector<std::pair<std::string, replay::Touch>>(
            std::begin(replay::touches), std::end(replay::touches))));
    command
        ->add_option("--process", options->process,
                     "Of several processes this one (who allocated most)")
        ->option_text("PID")
        ->check(CLI::PositiveNumber);
    command->add_option("--rounds", options->rounds, "How often each is asked, by turns (5)")
        ->option_text("N")
        ->check(CLI::Range(1, 1000));
    add_output_options(*command, settings);
    command->footer(
        "Examples:\n"
        "  tensorpool replay train.tpt\n"
        "  tensorpool replay train.tpt --against pool,jemalloc --rounds 11\n"
        "  tensorpool replay train.tpt --against pool,pool:retain_ms=0:huge_pages=auto");
    settings.details["replay"] =
        "Each allocator plays the calls of one process in a process of its own, on as many threads "
        "as were recorded, each thread's calls in their order, as fast as they can be made. A free "
        "waits for the allocation that it belongs to; and no thread goes on before the others have "
        "come to within a sixteenth of the most bytes alive at once, or 4 MiB, so that about the "
        "same blocks are alive together as were. What the program did between its calls is left "
        "out, but for touching its blocks. Blocks of arenas and scratches are played as blocks of "
        "the allocator; memory of devices is left out. Blocks made before the recording are made "
        "before the clock runs; blocks "
        "never freed are not freed here. Requests aligned to no more than 64 bytes are made by "
        "malloc, as programs do.\n\n"
        "TIME is from the first call to the last, CPU user and system time of all threads, SYSTEM "
        "the system's part of that, FAULTS minor page faults. PEAK is the most that was resident "
        "(VmHWM, right to some hundred KiB) less what was before the first block, and WASTE that "
        "over the most bytes alive at once. Columns ending in POOL are a contender's figure over "
        "the pool's of the same round: above 1 the pool is better.\n\n"
        "Contenders: pool is the process's global pool; glibc, tcmalloc, jemalloc and mimalloc "
        "serve malloc, put under the process by LD_PRELOAD, which is checked; jemalloc-tuned keeps "
        "freed memory (dirty_decay_ms:-1, muzzy_decay_ms:-1, oversize_threshold:0). none is no "
        "allocator: it plays the same calls over memory of which everything was known beforehand, "
        "so it shows what the replay itself costs and what no allocator can be better than. plan "
        "lays the blocks out as `tensorpool plan` does, for a second at most, in one mapping as "
        "large as the plan's peak, each aligned to 64 bytes as the pool's are: what a program can "
        "have that knows its blocks beforehand. With several threads their places hold only in the "
        "recorded order. "
        "Environment variables that tune any of them are not passed on. Who is not there is named "
        "with the Debian package that brings it.\n\n"
        "Options of the pool: " +
        replay::option_names() +
        ". They are those of the environment; retain is TENSORPOOL_RETAIN_BYTES.\n";
    command->callback([&settings, options] {
        settings.run = [&settings, options] { return replay::replay(settings, *options); };
    });
    return command;
}

}  // namespace tensorpool::command
