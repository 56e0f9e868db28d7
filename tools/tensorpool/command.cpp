#include "command.hpp"

#include <exception>

#include "common/options.hpp"
#include "common/output.hpp"
#include "common/target.hpp"
#include "help/help_text.hpp"

namespace tensorpool::command {
namespace {

// A screen has no room for more: the exit statuses are in the manual.
constexpr const char* footer =
    "Examples:\n"
    "  tensorpool top    all processes with pools, live (more: tensorpool top --help)";

class HelpFormatter : public CLI::Formatter {
public:
    std::string make_help(const CLI::App* app, std::string, CLI::AppFormatMode) const override {
        return help_text(*app);
    }
};

/// The subcommand being parsed, or the whole application if there is none.
const CLI::App& chosen(const CLI::App& app) {
    const auto subcommands = app.get_subcommands();
    return subcommands.empty() ? app : *subcommands.front();
}

/// The reason for the error. If an unknown subcommand was given, this replaces CLI11's "A
/// subcommand is required".
std::string reason(const CLI::App& app, const CLI::ParseError& error) {
    const std::vector<std::string> unknown = app.remaining();
    if (!app.get_subcommands().empty() || unknown.empty()) return printable(error.what());
    return fmt::format("there is no subcommand or option {}", printable(unknown.front()));
}

int refuse(const CLI::App& app, const CLI::ParseError& error) {
    const CLI::App& sub = chosen(app);
    const std::string name = &sub == &app ? app.get_name() : app.get_name() + ' ' + sub.get_name();
    print_error(
        fmt::format("{}: {}; `{} --help` lists the options", name, reason(app, error), name));
    return wrong_usage;
}

bool starts_program(const CLI::App& app, const std::string& subcommand) {
    const auto is_meant = [&](const CLI::App* sub) {
        return sub->get_name() == subcommand && sub->get_option_no_throw(parts_option) != nullptr;
    };
    return !app.get_subcommands(is_meant).empty();
}

/// Stores the arguments after `--` of a subcommand that starts a program, because CLI11 would parse
/// them. Returns the number of arguments that remain for CLI11.
int set_program_aside(const CLI::App& app, int count, const char* const* arguments,
                      Settings& settings) {
    if (count < 2 || !starts_program(app, arguments[1])) return count;
    const auto is_end = [](std::string_view argument) { return argument == "--"; };
    const char* const* const end = std::find_if(arguments, arguments + count, is_end);
    if (end == arguments + count) return count;
    settings.program.assign(end + 1, arguments + count);
    settings.lacks_program = settings.program.empty();
    return static_cast<int>(end - arguments);
}

int run_chosen(const Settings& settings) try {
    return settings.run ? settings.run() : success;
} catch (const AttachError& error) {
    throw to_command_error(error);
}

int run(const Settings& settings) try {
    return run_chosen(settings);
} catch (const CommandError& error) {
    print_error(fmt::format("tensorpool: {}", error.what()));
    return error.code();
} catch (const std::bad_alloc&) {
    print_error("tensorpool: out of memory; `tensorpool doctor` shows how much is available");
    return finding;
} catch (const std::exception& error) {
    print_error(fmt::format("tensorpool: {}", printable(error.what())));
    return finding;
}

}  // namespace

std::unique_ptr<CLI::App> declare(Settings& settings) {
    auto app = std::make_unique<CLI::App>(
        "Shows where the memory of programs is, and runs programs on tensorpool.", "tensorpool");
    app->formatter(std::make_shared<HelpFormatter>());
    app->set_help_flag("-h,--help", "Print this help");
    app->set_version_flag("--version", "tensorpool " TENSORPOOL_VERSION)
        ->description("Print the version");
    app->require_subcommand(1);
    app->footer(footer);
    add_subcommands(*app, settings);
    return app;
}

int run_command(int count, const char* const* arguments) {
    use_locale();
    Settings settings;
    const std::unique_ptr<CLI::App> app = declare(settings);
    try {
        app->parse(set_program_aside(*app, count, arguments, settings), arguments);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == 0) return app->exit(error);  // help, or the version
        return refuse(*app, error);
    }
    return run(settings);
}

}  // namespace tensorpool::command
