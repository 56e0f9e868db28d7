#include "common/options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "common/html.hpp"
#include "common/printable.hpp"
#include "export/formats.hpp"

namespace tensorpool::command {
namespace {

using export_::At;

enum class Format { torch, heap, chrome, rmm };

// The default number of calls in a snapshot's history; viewers become slow beyond that.
constexpr std::uint64_t usual_entries = 200'000;

struct ExportOptions {
    std::string path;
    Format format = Format::torch;
    std::string output;
    At at = At::peak;
    std::uint64_t entries = usual_entries;
};

/// Writes the chosen format. Returns how many calls were left out of a history.
std::uint64_t write(const export_::History& history, const ExportOptions& options,
                    WrittenFile& file) {
    const export_::Moment moment = export_::moment_of(history, options.at);
    switch (options.format) {
        case Format::torch:
            return export_::write_snapshot(history, moment, options.entries, file);
        case Format::heap:
            export_::write_heap_profile(history, moment, file);
            break;
        case Format::chrome:
            export_::write_chrome_trace(history, file);
            break;
        case Format::rmm:
            export_::write_rmm_log(history, file);
            break;
    }
    return 0;
}

void check_output(const Settings& settings, const ExportOptions& options) {
    if (!options.output.empty()) return;
    if (settings.json) {
        throw CommandError(wrong_usage,
                           "--json would be mixed with the export; name a file with -o");
    }
    if (options.format == Format::torch && isatty(STDOUT_FILENO) != 0) {
        throw CommandError(wrong_usage,
                           "a snapshot is binary and cannot go to a terminal; name a file with -o");
    }
}

void report(const Settings& settings, const ExportOptions& options, const WrittenFile& file,
            std::uint64_t left_out, std::uint64_t cut_bytes) {
    if (cut_bytes > 0) {
        print_error(
            fmt::format("tensorpool: {} is truncated: its last {} bytes are an incomplete chunk; "
                        "everything before "
                        "them was exported",
                        printable(options.path), cut_bytes));
    }
    if (settings.json) {
        const nlohmann::ordered_json result{{"path", options.output},
                                            {"bytes", file.bytes()},
                                            {"calls_left_out", left_out},
                                            {"cut_bytes", cut_bytes}};
        print_line(json_line(result));
    } else if (left_out > 0) {
        fmt::print(
            stderr,
            "tensorpool: the history holds the last {} calls; {} earlier calls were left out "
            "(--entries)\n",
            options.entries, left_out);
    }
}

int export_file(const Settings& settings, const ExportOptions& options) {
    check_output(settings, options);
    const trace::Recording recording = trace::read_recording(options.path);
    if (recording.calls.empty()) {
        throw CommandError(finding,
                           fmt::format("{}: contains no calls, so there is nothing to export",
                                       printable(options.path)));
    }
    const export_::History history(recording);
    WrittenFile file(options.output, options.path);
    const std::uint64_t left_out = write(history, options, file);
    file.finish();
    report(settings, options, file, left_out, recording.cut_bytes);
    return success;
}

void add_options(CLI::App& command, ExportOptions& options, Settings& settings) {
    static const std::map<std::string, Format> formats = {{"torch", Format::torch},
                                                          {"heap", Format::heap},
                                                          {"chrome", Format::chrome},
                                                          {"rmm", Format::rmm}};
    static const std::map<std::string, At> moments = {{"peak", At::peak}, {"end", At::end}};
    add_file(command, options.path, "A trace, or a log of RMM");
    add_option(command, "-f,--format FORMAT", options.format, "torch, heap, chrome or rmm")
        ->required()
        ->transform(CLI::CheckedTransformer(formats));
    add_option(command, "-o,--output OUT", options.output, "Write to this file (standard output)");
    add_option(command, "--at MOMENT", options.at,
               "The moment of torch and heap: peak or end (peak)")
        ->transform(CLI::CheckedTransformer(moments));
    add_option(command, "--entries N", options.entries,
               fmt::format("Maximum calls in torch's history ({})", usual_entries));
    command.add_flag("--json", settings.json, "Print what was written as JSON");
}

constexpr const char* footer =
    "Examples:\n"
    "  tensorpool export train.trace -f torch -o train.pickle   PyTorch's memory_viz\n"
    "  tensorpool export train.trace -f heap -o train.heap\n"
    "  jeprof --text train.heap\n"
    "  tensorpool export train.trace -f chrome -o train.json    ui.perfetto.dev\n"
    "  tensorpool export train.trace -f rmm -o train.csv        RMM's replay";

constexpr const char* details =
    "torch is a memory snapshot. Each process is a device. Its segments are the addresses that "
    "blocks of a pool, an arena or a scratch have had so far, because the trace does not record "
    "what pools reserve. Each allocator of device memory follows as a device of its own, with its "
    "slabs as segments and with its streams. The history ends at the chosen moment.\n\n"
    "heap is a profile of gperftools, by call stack if stacks were sampled, otherwise by pool and "
    "scope. It contains the names of functions and lines, so that readers need no program. chrome "
    "holds the live bytes of each pool over time (thinned), scopes, and failed requests. rmm is "
    "the log of RMM's logging_resource_adaptor. That format has no processes: addresses of the "
    "second process are moved by 2^48, of the third by twice that, and so on, followed by those of "
    "each allocator of device memory.\n";

}  // namespace

CLI::App* add_export(CLI::App& app, Settings& settings) {
    const auto options = std::make_shared<ExportOptions>();
    CLI::App* const command = add_subcommand(
        app, settings,
        {"export", "Convert a recording to the format of another tool", footer, details},
        [&settings, options] { return export_file(settings, *options); });
    add_options(*command, *options, settings);
    return command;
}

}  // namespace tensorpool::command
