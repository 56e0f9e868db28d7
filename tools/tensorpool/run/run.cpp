#include "subcommands.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <memory>

#include "common/printable.hpp"
#include "run/size_text.hpp"
#include "run/start.hpp"

namespace tensorpool::command {
namespace {

using run::Words;

void declare_options(CLI::App& command, Words& words, Settings& settings) {
    const CLI::Validator is_size(run::problem_of_size, "", "size");
    command
        .add_option("--with", words.with,
                    "What to put under it: malloc, numpy, torch, or none (all that can be)")
        ->option_text("PARTS")
        ->delimiter(',')
        ->allow_extra_args(false);
    command.add_option("--limit", words.limit, "The most that the pool of each process may hold")
        ->option_text("SIZE")
        ->check(is_size);
    command
        .add_option("--interpose-min", words.interpose_min,
                    "Of malloc: blocks from this size on (64KiB)")
        ->option_text("SIZE")
        ->check(is_size);
    CLI::Option* const trace =
        command.add_option("--trace", words.trace, "Record the calls of all its processes")
            ->option_text("FILE");
    command.add_option("--stacks", words.stacks, "Record a call stack each SIZE bytes too")
        ->option_text("SIZE")
        ->check(is_size)
        ->needs(trace);
    command.add_option("--report", words.report, "Where the report goes (standard error), or none")
        ->option_text("FILE");
    command.add_flag("--json", settings.json, "Print the report as JSON, one object a line");
}

/// What stands after --, or all from the first word on that is no option.
std::vector<std::string> program_of(const CLI::App& command, const Settings& settings) {
    std::vector<std::string> words = command.remaining();
    if (words.empty()) {
        words = settings.program;
    } else if (words.front().starts_with('-')) {
        throw CommandError(wrong_usage, fmt::format("run: there is no option {}; `tensorpool run "
                                                    "--help` lists the options",
                                                    printable(words.front())));
    } else if (!settings.program.empty()) {
        words.push_back("--");
        words.insert(words.end(), settings.program.begin(), settings.program.end());
    }
    if (!words.empty()) return words;
    throw CommandError(wrong_usage,
                       "run: which program? Name it after --, as in `tensorpool run -- "
                       "python3 train.py`");
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool run -- python3 train.py\n"
    "  tensorpool run --limit 2GiB --with malloc -- ./simulate input\n"
    "  tensorpool run --trace t.tptrace --stacks 512KiB -- python3 train.py\n"
    "\n"
    "Ends as the program does: with its code, or by its signal; 125 to 127 when the\n"
    "program could not begin.";

constexpr const char* details =
    "malloc puts libtensorpool_interpose.so before what LD_PRELOAD holds: blocks from the "
    "minimum on come from the pool, smaller ones from where they came before. numpy and torch "
    "put a folder before what PYTHONPATH holds, whose sitecustomize.py waits until the program "
    "imports NumPy or PyTorch, calls tensorpool.enable_numpy() or enable_torch() then, and runs "
    "the sitecustomize that Python would have run without it. All that the program starts has "
    "them too.\n"
    "\n"
    "NumPy is served where it is imported, on that thread or in that task of asyncio, and in "
    "what begins there after that; arrays of threads that ran before stay with NumPy. With -I, "
    "-E or -S Python looks for neither.\n"
    "\n"
    "At the limit a request fails as it does when the machine has no memory left: malloc "
    "returns NULL and sets ENOMEM, C++ throws std::bad_alloc, NumPy raises MemoryError. Free "
    "memory is given back first. The limit holds for the global pool of each process by itself, "
    "not for arenas (TENSORPOOL_ARENA_MAX_CAPACITY) and not for what is below the minimum.\n"
    "\n"
    "A process with a second thread of its own and over 64 MiB free gets one more thread, "
    "tensorpool-trim, which gives back what was free for a period of ten seconds while the process "
    "does nothing; TENSORPOOL_RETAIN_BACKGROUND=off keeps it away, and on starts it in every "
    "process that uses the pool.\n"
    "\n"
    "The report has each process that used a pool, the largest first: three in full, seventeen "
    "in a line each, and the rest added up. Figures are those that a process ended with, "
    "however it ended; those of a fork go on from its parent's. Processes that still run when "
    "the program ends are shown as they are then, and recorded no longer.\n"
    "\n"
    "Signals that other processes send to tensorpool are passed on to the program, but for KILL "
    "and STOP, which cannot be, and those of faults (SEGV, BUS, FPE, ILL, TRAP, SYS); those of the "
    "terminal it has by itself, being in the same group of processes. When it stops, tensorpool "
    "does. A signal that was sent to the whole group by kill(1) comes twice.\n";

}  // namespace

CLI::App* add_run(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("run", "Run a program with the pool under it, and report");
    const auto words = std::make_shared<Words>();
    declare_options(*command, *words, settings);
    command->prefix_command();
    command->footer(footer);
    settings.details["run"] = details;
    command->callback([&settings, words, command] {
        settings.run = [&settings, words, command] {
            words->program = program_of(*command, settings);
            return run::run_program(*words, settings.json);
        };
    });
    return command;
}

}  // namespace tensorpool::command
