#include "help/help_text.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <sstream>

#include "common/printable.hpp"

namespace tensorpool::command {
namespace {

constexpr std::size_t width = 79;
constexpr std::size_t left_width = 22;

std::string entry(const std::string& name, const std::string& description) {
    std::string text = "  " + fit(name, std::max(name.size(), left_width - 2));
    std::string indent(left_width, ' ');
    bool first = true;
    for (const std::string& line : wrap(description, width - left_width - 1)) {
        text += (first ? " " : indent + ' ') + line + '\n';
        first = false;
    }
    return text;
}

std::string usage(const CLI::App& app) {
    const CLI::App* const parent = app.get_parent();
    std::string line = "Usage: " + (parent != nullptr ? parent->get_name() + ' ' : "");
    line += app.get_name();
    if (!shown_subcommands(app).empty()) return line + " SUBCOMMAND [OPTIONS]\n";
    for (const std::string& word : required_arguments(app)) line += ' ' + word;
    return line + " [OPTIONS]" + (app.get_prefix_command() ? " [--] PROGRAM [ARGUMENTS]\n" : "\n");
}

}  // namespace

std::string names_of(const CLI::Option& option) {
    std::string names;
    for (const std::string& name : option.get_snames()) names += ", -" + name;
    for (const std::string& name : option.get_lnames()) names += ", --" + name;
    names.erase(0, 2);
    if (!option.get_option_text().empty()) names += ' ' + option.get_option_text();
    return names;
}

std::vector<const CLI::Option*> shown_options(const CLI::App& app) {
    std::vector<const CLI::Option*> options = app.get_options([](const CLI::Option* option) {
        return option->nonpositional() && !option->get_group().empty();
    });
    // std::ranges::stable_partition is not used, because clang 14 does not compile libstdc++ 12's
    // return type.
    std::stable_partition(options.begin(), options.end(),
                          [&](const CLI::Option* option) { return option != app.get_help_ptr(); });
    return options;
}

std::vector<std::string> required_arguments(const CLI::App& app) {
    std::vector<std::string> words;
    for (const CLI::Option* const option : app.get_options()) {
        if (!option->nonpositional() && !option->get_option_text().empty())
            words.push_back(option->get_option_text());
    }
    return words;
}

std::vector<const CLI::App*> shown_subcommands(const CLI::App& app) {
    return app.get_subcommands([](const CLI::App* sub) { return !sub->get_group().empty(); });
}

std::string help_text(const CLI::App& app) {
    std::string text;
    for (const std::string& line : wrap(app.get_description(), width)) text += line + '\n';
    // With this many subcommands, a screen has no room for empty lines or titles here.
    const bool has_room = shown_subcommands(app).empty();
    const char* const gap = has_room ? "\n" : "";
    text += gap + usage(app);
    for (const CLI::App* const sub : shown_subcommands(app)) {
        text += entry(sub->get_name(), sub->get_description());
    }
    if (has_room) text += "\nOptions:\n";
    for (const CLI::Option* const option : shown_options(app)) {
        text += entry(names_of(*option), option->get_description());
    }
    return app.get_footer().empty() ? text : text + gap + app.get_footer() + '\n';
}

}  // namespace tensorpool::command
