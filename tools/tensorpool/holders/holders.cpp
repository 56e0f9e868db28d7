#include "common/options.hpp"
#include "common/output.hpp"
#include "formats/holders/answer.hpp"

namespace tensorpool::command {
namespace {

struct HoldersOptions {
    std::size_t top = 10;
    std::string patience = "3s";
};

int show_holders(const Settings& settings, const HoldersOptions& options) {
    const StatisticsReader process = attach_chosen(settings);
    const holders::Answer answer = holders::ask(process, *parse_time(options.patience));
    print_line(settings.json ? to_json(answer, process.process(), options.top)
                             : to_text(answer, process.process(), options.top, sizes_of(settings)));
    return success;
}

void declare_options(CLI::App& command, Settings& settings, HoldersOptions& options) {
    add_process_options(command, settings);
    add_option(command, "--top N", options.top, "Number of arrays, at most 10 (10)",
               CLI::Range(1, 10));
    add_option(command, "--for TIME", options.patience,
               "Time to wait for the answer, such as 10s or 5min (3s)", problem_of_time);
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool holders --pid 4711\n"
    "  tensorpool holders --name train --top 3\n"
    "\n"
    "The process answers if it was started with `tensorpool run --with holders`, or\n"
    "calls tensorpool.enable_holders(). The search stops it for up to about 1 s.";

constexpr const char* details =
    "Shows the largest arrays of NumPy and tensors of PyTorch of a Python process, and the "
    "variables, attributes, dict keys and list indexes that refer to them. Arrays that share "
    "memory are one row; \".base\" stands for what a view refers to. \"<Class>\" is an object to "
    "which no name was found within eight steps. Names and types are shown, but no values.\n"
    "\n"
    "The process looks at all its objects, which takes about 0.3 s for a million of them. It ends "
    "the search after 0.8 s and reports that. It sees the request when one of its threads takes a "
    "slow path of a pool, and answers when its main thread next runs Python code.\n"
    "\n"
    "What only C or C++ code holds has no name, such as tensors that PyTorch saved for the "
    "backward pass, elements of arrays of objects, and results kept by functools.lru_cache. "
    "Objects that gc.freeze() hid are not looked at.\n";

}  // namespace

void add_holders(CLI::App& app, Settings& settings) {
    add_subcommand(app, settings,
                   {"holders", "Name what refers to the largest arrays of Python", footer, details},
                   show_holders, declare_options);
}

}  // namespace tensorpool::command
