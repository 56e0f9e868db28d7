#include "subcommands.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <nlohmann/json.hpp>

#include "common/output.hpp"
#include "common/printable.hpp"
#include "export/formats.hpp"
#include "inspect/report/report_text.hpp"
#include "trace/recording.hpp"

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
                    export_::WrittenFile& file) {
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

void report(const Settings& settings, const ExportOptions& options,
            const export_::WrittenFile& file, std::uint64_t left_out, std::uint64_t cut_bytes) {
    if (cut_bytes > 0) {
        print_error(
            fmt::format("tensorpool: {} is truncated: its last {} bytes are an incomplete chunk; "
                        "everything before "
                        "them was exported",
                        printable(options.path), cut_bytes));
    }
    if (settings.json) {
        const nlohmann::ordered_json result{{"path", inspect::valid_utf8(options.output)},
                                            {"bytes", file.bytes()},
                                            {"calls_left_out", left_out},
                                            {"cut_bytes", cut_bytes}};
        print_line(result.dump());
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
    export_::WrittenFile file(options.output, options.path);
    const std::uint64_t left_out = write(history, options, file);
    file.finish();
    report(settings, options, file, left_out, recording.cut_bytes);
    return success;
}

void add_options(CLI::App& command, ExportOptions& options) {
    static const std::map<std::string, Format> formats = {{"torch", Format::torch},
                                                          {"heap", Format::heap},
                                                          {"chrome", Format::chrome},
                                                          {"rmm", Format::rmm}};
    static const std::map<std::string, At> moments = {{"peak", At::peak}, {"end", At::end}};
    command.add_option("FILE", options.path, "A trace, or a log of RMM")
        ->option_text("FILE")
        ->required();
    command.add_option("-f,--format", options.format, "torch, heap, chrome or rmm")
        ->option_text("FORMAT")
        ->required()
        ->transform(CLI::CheckedTransformer(formats));
    command.add_option("-o,--output", options.output, "Write to this file (standard output)")
        ->option_text("OUT");
    command.add_option("--at", options.at, "The moment of torch and heap: peak or end (peak)")
        ->option_text("MOMENT")
        ->transform(CLI::CheckedTransformer(moments));
    command
        .add_option("--entries", options.entries,
                    fmt::format("Maximum calls in torch's history ({})", usual_entries))
        ->option_text("N");
}

}  // namespace

CLI::App* add_export(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("export", "Convert a recording to the format of another tool");
    const auto options = std::make_shared<ExportOptions>();
    add_options(*command, *options);
    command->add_flag("--json", settings.json, "Print what was written as JSON");
    command->footer(
        "Examples:\n"
        "  tensorpool export train.trace -f torch -o train.pickle   PyTorch's memory_viz\n"
        "  tensorpool export train.trace -f heap -o train.heap\n"
        "  jeprof --text train.heap                                 by pool and scope\n"
        "  jeprof --text $(which python3) train.heap                with sampled stacks\n"
        "  tensorpool export train.trace -f chrome -o train.json    ui.perfetto.dev\n"
        "  tensorpool export train.trace -f rmm -o train.csv        RMM's replay");
    settings.details["export"] =
        "torch is a memory snapshot. Each process is a device. Its segments are the addresses that "
        "blocks of a pool, an arena or a scratch have had so far, because the trace does not "
        "record "
        "what pools reserve. Each allocator of device memory follows as a device of its own, with "
        "its slabs as segments and with its streams. The history ends at the chosen moment.\n\n"
        "heap is a profile of gperftools, by call stack if stacks were sampled, otherwise by pool "
        "and scope. chrome holds the live bytes of each pool over time (thinned), scopes, and "
        "failed "
        "requests. rmm is the log of RMM's logging_resource_adaptor. That format has no processes: "
        "addresses of the second process are moved by 2^48, of the third by twice that, and so on, "
        "followed by those of each allocator of device memory.\n";
    command->callback([&settings, options] {
        settings.run = [&settings, options] { return export_file(settings, *options); };
    });
    return command;
}

}  // namespace tensorpool::command
