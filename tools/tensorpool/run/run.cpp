#include "common/options.hpp"
#include "common/output.hpp"
#include "run/report.hpp"

namespace tensorpool::command {
namespace {

using run::Arguments;

void declare_options(CLI::App& command, Arguments& arguments, Settings& settings) {
    add_parts_option(command, arguments.with);
    add_option(command, "--limit SIZE", arguments.limit,
               "Maximum capacity of the pool of each process", problem_of_size);
    add_option(command, "--budget FILE", arguments.budget,
               "Set the budgets of pools and scopes from FILE");
    add_option(command, "--interpose-min SIZE", arguments.interpose_min,
               "With malloc: minimum size of pool blocks (64KiB)", problem_of_size);
    CLI::Option* const trace = add_option(command, "--trace FILE", arguments.trace,
                                          "Record the calls of all processes of the program");
    add_option(command, "--stacks SIZE", arguments.stacks,
               "Also record a call stack about every SIZE bytes", problem_of_size)
        ->needs(trace);
    add_option(command, "--report FILE", arguments.report,
               "Write the report to FILE (standard error), or none");
    command.add_flag("--json", settings.json, "Print the report as JSON, one object per line");
}

/// The arguments after --, or all from the first one on that is not an option.
std::vector<std::string> program_of(const CLI::App& command, const Settings& settings) {
    std::vector<std::string> arguments = command.remaining();
    if (arguments.empty()) {
        arguments = settings.program;
    } else if (arguments.front().starts_with('-')) {
        throw CommandError(wrong_usage, fmt::format("run: unknown option {}; `tensorpool run "
                                                    "--help` lists the options",
                                                    printable(arguments.front())));
    } else if (!settings.program.empty()) {
        arguments.push_back("--");
        arguments.insert(arguments.end(), settings.program.begin(), settings.program.end());
    }
    if (!arguments.empty()) return arguments;
    throw CommandError(wrong_usage,
                       "run: no program given; name it after --, as in `tensorpool run -- "
                       "python3 train.py`");
}

/// The file for the report, opened before the program starts.
class ReportOutput {
public:
    explicit ReportOutput(const std::string& path) : path_(path), is_wanted_(path != "none") {
        if (path.empty() || !is_wanted_) return;
        file_ = Descriptor(
            ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666));
        if (file_) return;
        throw CommandError(run_failed, fmt::format("run: --report {} cannot be written: {}",
                                                   printable(path), std::strerror(errno)));
    }

    bool is_wanted() const noexcept { return is_wanted_; }
    void write(std::string_view text) const {
        const auto bytes = std::as_bytes(std::span(text));
        if (!file_) {
            std::fwrite(text.data(), 1, text.size(), stderr);
        } else if (!write_all(file_, bytes)) {
            print_error(
                fmt::format("tensorpool: run: --report {} could not be written completely: {}",
                            printable(path_), std::strerror(errno)));
        }
    }

private:
    std::string path_;
    bool is_wanted_;
    Descriptor file_;
};

int run_and_report(Arguments& arguments, bool json) {
    arguments.is_recorded = !arguments.trace.empty();
    const launch::Launch launch(arguments);
    const ReportOutput output(arguments.report);
    std::optional<run::TraceOutput> trace;
    try {
        if (arguments.is_recorded) trace.emplace(arguments.trace);
    } catch (const CommandError& error) {
        throw CommandError(run_failed, fmt::format("run: --trace {}", error.what()));
    }
    run::TraceOutput* const recorder = trace ? &*trace : nullptr;
    const auto report = [&](const launch::Outcome& outcome, const launch::Results& results) {
        if (!output.is_wanted()) return;
        const run::Report made{arguments, launch.parts(), outcome, results, recorder};
        output.write(json ? to_json(made) : to_text(made));
    };
    return end_like(launch.run({}, recorder, report));
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool run -- python3 train.py\n"
    "  tensorpool run --limit 2GiB --with malloc -- ./simulate input\n"
    "  tensorpool run --trace t.tptrace --stacks 512KiB -- python3 train.py\n"
    "\n"
    "Ends as the program does: with its code, or by its signal; 125 to 127 if the\n"
    "program could not be started.";

constexpr const char* details =
    "malloc preloads libtensorpool_interpose.so, before the libraries in LD_PRELOAD. Blocks of at "
    "least the minimum size come from the pool, smaller ones from the program's usual allocator. "
    "numpy and torch insert a folder before those in PYTHONPATH. Its sitecustomize.py waits until "
    "the program imports NumPy or PyTorch, then calls tensorpool.enable_numpy() or "
    "enable_torch(), and runs the sitecustomize that Python would have run otherwise. All "
    "processes that the program starts inherit the parts.\n"
    "\n"
    "holders makes Python programs answer `tensorpool holders`, which stops them while they do. "
    "It is enabled only if it is named: alone beside the other parts, as in `--with holders`, or "
    "with those named, as in `--with numpy,holders`. So is profile, which lets the pools sample "
    "allocations from the start, for `tensorpool profile`, `leaks`, `explain` and `top`: one in "
    "512 KiB, or as TENSORPOOL_PROFILE says.\n"
    "\n"
    "NumPy is served on the thread or asyncio task that imports it, and on those started from "
    "there afterwards. Threads that ran before keep NumPy's allocator. With -I, -E or -S, Python "
    "ignores both parts.\n"
    "\n"
    "At the limit, a request fails as it does when the machine is out of memory: malloc returns "
    "NULL and sets ENOMEM, C++ throws std::bad_alloc, NumPy raises MemoryError. Free memory is "
    "released first. The limit applies to the global pool of each process separately. It does not "
    "apply to arenas (TENSORPOOL_ARENA_MAX_CAPACITY) or to blocks below the minimum size.\n"
    "\n"
    "A file of budgets has a line for each pool or scope, such as `pool cache hard=2GiB "
    "soft=1GiB` or `scope loader hard=512MiB`; a # begins a comment. Every pool of that name "
    "charges its capacity to the budget. A scope of that name (StatisticsScope, tensorpool.scope) "
    "charges the blocks that its thread allocates from pools without a budget, until they are "
    "freed. So if the file names the pool `global`, which serves malloc, NumPy and PyTorch, "
    "scopes do not charge what they allocate from it. `process hard=4GiB` limits the sum of the "
    "pools and scopes in the file. Requests beyond a hard limit fail like those beyond --limit. "
    "The limits apply to each process separately. The program gets the path of the file in "
    "TENSORPOOL_BUDGETS.\n"
    "\n"
    "A process that creates a thread gets one more, tensorpool-trim. While more than 64 MiB are "
    "free in its pool, it releases what was free for ten seconds. "
    "TENSORPOOL_RETAIN_BACKGROUND=off disables it; on starts it in every process.\n"
    "\n"
    "The report lists each process that used a pool, the largest first: three in full, seventeen "
    "with one line each, and the totals of the rest. The values are those at the end of a "
    "process, however it ended. A forked process continues from the values of its parent. "
    "Processes that still run when the program ends are shown with their values at that time, and "
    "are no longer recorded.\n"
    "\n"
    "Signals that other processes send to tensorpool are passed on to the program, except KILL "
    "and STOP, which cannot be caught, and those of faults (SEGV, BUS, FPE, ILL, TRAP, SYS). "
    "Signals of the terminal reach the program directly, because it is in the same process group. "
    "If the program stops, tensorpool stops too. A signal that kill(1) sends to the whole group "
    "arrives twice.\n";

}  // namespace

void add_run(CLI::App& app, Settings& settings) {
    const auto arguments = std::make_shared<Arguments>();
    CLI::App* const command = add_subcommand(
        app, settings, {"run", "Run a program with its memory from the pool", footer, details},
        [&app, &settings, arguments] {
            arguments->program = program_of(*app.get_subcommand("run"), settings);
            return run_and_report(*arguments, settings.json);
        });
    declare_options(*command, *arguments, settings);
    command->prefix_command();
}

}  // namespace tensorpool::command
