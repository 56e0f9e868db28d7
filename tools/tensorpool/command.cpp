#include "command.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <string_view>

#include "common/printable.hpp"
#include "help/help_text.hpp"
#include "subcommands.hpp"

namespace tensorpool::command {
namespace {

// A screen has room for no more: exit statuses are in the manual.
constexpr const char* footer =
    "Examples:\n"
    "  tensorpool top    all processes with pools, live (more: tensorpool top --help)";

class HelpFormatter : public CLI::Formatter {
public:
    std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
        return help_text(*app);
    }
};

/// The subcommand that was begun, else all.
const CLI::App& chosen(const CLI::App& app) {
    const auto subcommands = app.get_subcommands();
    return subcommands.empty() ? app : *subcommands.front();
}

/// Without CLI11's "A subcommand is required" where there was a word, but no subcommand's.
std::string reason(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining();
    if (!app.get_subcommands().empty() || unknown.empty()) return printable(error.what());
    return fmt::format("there is no subcommand or option {}", printable(unknown.front()));
}

int refuse(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& sub = chosen(app);
    const std::string name = &sub == &app ? app.get_name() : app.get_name() + ' ' + sub.get_name();
    fmt::print(stderr, "{}: {}; `{} --help` shows what there is\n", name, reason(app, error), name);
    return wrong_usage;
}

/// What stands after -- is the program's of `run`: CLI11 would take its words apart. Returns how
/// many are ours.
int set_program_aside(int count, const char* const* words, Settings& settings) {
    if (count < 2 || std::string_view(words[1]) != "run") return count;
    const auto is_end = [](std::string_view word) { return word == "--"; };
    const char* const* const end = std::find_if(words, words + count, is_end);
    if (end == words + count) return count;
    settings.program.assign(end + 1, words + count);
    return static_cast<int>(end - words);
}

int run(const Settings& settings) try {
    return settings.run ? settings.run() : success;
} catch (const CommandError& error) {
    fmt::print(stderr, "tensorpool: {}\n", error.what());
    return error.code();
} catch (const std::bad_alloc&) {
    fmt::print(stderr, "tensorpool: out of memory; `tensorpool doctor` tells what there is\n");
    return finding;
} catch (const std::exception& error) {
    fmt::print(stderr, "tensorpool: {}\n", printable(error.what()));
    return finding;
}

}  // namespace

std::unique_ptr<CLI::App> declare(Settings& settings) {
    auto app = std::make_unique<CLI::App>(
        "Shows where the memory of programs is, and puts tensorpool under them.", "tensorpool");
    app->formatter(std::make_shared<HelpFormatter>());
    app->set_help_flag("-h,--help", "Print this help");
    app->set_version_flag("--version", "tensorpool " TENSORPOOL_VERSION)
        ->description("Print the version");
    app->require_subcommand(1);
    app->footer(footer);
    add_ls(*app, settings);
    add_top(*app, settings);
    add_stat(*app, settings);
    add_events(*app, settings);
    add_serve(*app, settings);
    add_run(*app, settings);
    add_record(*app, settings);
    add_trim(*app, settings);
    add_replay(*app, settings);
    add_inspect(*app, settings);
    add_plan(*app, settings);
    add_export(*app, settings);
    add_doctor(*app, settings);
    add_manual(*app, settings);
    return app;
}

int run_command(int count, const char* const* words) {
    use_locale();
    Settings settings;
    const std::unique_ptr<CLI::App> app = declare(settings);
    try {
        app->parse(set_program_aside(count, words, settings), words);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app->exit(error);  // help, or the version
        return refuse(*app, error);
    }
    return run(settings);
}

}  // namespace tensorpool::command
