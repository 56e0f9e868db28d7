#include "common/output.hpp"
#include "inspect/analysis.hpp"
#include "inspect/model/model_report.hpp"

namespace tensorpool::command {
namespace {

struct InspectOptions {
    std::string path;
    std::string html;
    std::size_t top = 10;
    model::ModelOptions model;
};

trace::Recording read_calls(const std::string& path) {
    trace::Recording recording = trace::read_recording(path);
    if (!recording.calls.empty()) return recording;
    throw CommandError(finding, fmt::format("{}: holds no calls; did the program use tensorpool "
                                            "while it was recorded?",
                                            printable(path)));
}

int inspect_trace(const Settings& settings, const InspectOptions& options) {
    const trace::Recording recording = read_calls(options.path);
    const inspect::Analysis analysis = inspect::analyse(recording, options.top);
    const Sizes sizes = sizes_of(settings);
    if (!options.html.empty()) {
        write_file(options.html, options.path,
                   inspect::html_report(analysis, options.path, sizes, options.top));
    }
    if (settings.json) {
        print_line(inspect::json_report(analysis));
    } else if (options.html.empty()) {
        print_text(inspect::text_report(analysis, options.path, sizes, options.top));
    }
    return success;
}

int inspect_file(const Settings& settings, const InspectOptions& options) {
    if (!model::is_model(options.path) && !options.model.estimate)
        return inspect_trace(settings, options);
    if (options.html.empty())
        return model::inspect(settings, options.model, options.path, options.top);
    throw CommandError(wrong_usage,
                       fmt::format("--html is for traces, and {} is a model; leave it out",
                                   printable(options.path)));
}

void declare_options(CLI::App& command, Settings& settings, InspectOptions& options) {
    add_file(command, options.path, "A trace, an RMM log, or a model");
    add_option(command, "--top N", options.top, "Rows of long tables (10)", CLI::Range(1, 10'000));
    add_option(command, "--html REPORT.html", options.html, "Write a page with a timeline instead");
    model::add_options(command, options.model);
    add_output_options(command, settings);
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool inspect train.trace --html report.html\n"
    "  tensorpool inspect model.gguf --json | jq .by_type\n"
    "  tensorpool inspect model.gguf --estimate --context 32768 --kv-type q8_0";

constexpr const char* details =
    "The LOWER BOUND is the maximum number of bytes alive at once; no allocator needs less. The "
    "PLAN is a layout of the recorded blocks with their lifetimes known in advance, each aligned "
    "to 64 bytes, as by `tensorpool plan` within a fifth of a second; for more than 20,000 blocks "
    "only its greedy orders are used. HELD is the memory that pools, arenas and scratches had "
    "taken from the system, if the recording contains it. BLOCKS includes the rounding of the "
    "pool, PAGES the rest of each page on which a block lies, and ADDRESSES USED all addresses "
    "that any block had up to then, which is what a pool holds that never releases memory.\n\n"
    "The page of --html needs no network. Call sites are shown if stacks were sampled, with "
    "--stacks of `tensorpool run`. A block belongs to the innermost scope that was open on the "
    "thread that requested it. Call sites are estimated from samples: a block of n bytes is "
    "sampled with probability 1 - exp(-n/interval). The call site is the first function of the "
    "stack that is not part of an allocator. Files that changed after the recording began are not "
    "used for names.\n";

}  // namespace

void add_inspect(CLI::App& app, Settings& settings) {
    add_subcommand(app, settings,
                   {"inspect", "Report where memory went, or what a model needs", footer,
                    model::manual_text() + details},
                   inspect_file, declare_options);
}

}  // namespace tensorpool::command
