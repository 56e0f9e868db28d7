#include <fmt/format.h>

#include <fstream>
#include <memory>
#include <string>

#include "common/options.hpp"
#include "help/help_text.hpp"
#include "help/manual_pages.hpp"

namespace tensorpool::command {
namespace {

/// Returns a shell expression that lists the values of an option by its placeholder, or nothing for
/// other placeholders. `compgen -W` performs shell expansion, including command substitution, so
/// process names with other characters than these are left out.
std::string values_of(const std::string& value) {
    constexpr const char* list = "$(tensorpool ls --json 2>/dev/null | sed -n ";
    if (value == "PID") return list + std::string("'s/^{\"process\":\\([0-9]*\\),.*/\\1/p')");
    if (value == "NAME") {
        return list + std::string(
                          "'s/^{\"process\":[0-9]*,\"name\":\"\\([A-Za-z0-9_.+-]*\\)\",.*/"
                          "\\1/p')");
    }
    return "";
}

/// The names of an option, separated by `|` for a pattern of `case`.
std::string words_of(const CLI::Option& option, std::string_view between) {
    std::string words;
    for (const std::string& name : option.get_snames())
        words += fmt::format("{}-{}", between, name);
    for (const std::string& name : option.get_lnames())
        words += fmt::format("{}--{}", between, name);
    return words.substr(between.size());
}

std::string value_cases(const CLI::App& app) {
    std::string cases;
    for (const CLI::Option* const option : shown_options(app)) {
        const std::string& value = option->get_option_text();
        if (value.empty()) continue;
        const std::string reply =
            value == "FILE" || value == "DIR"
                ? "compgen -f -- \"$word\""
                : fmt::format("compgen -W \"{}\" -- \"$word\"", values_of(value));
        cases += fmt::format(
            "        \"{} \"{})\n            COMPREPLY=($({}))\n            return ;;\n",
            app.get_name(), words_of(*option, fmt::format("|\"{} \"", app.get_name())), reply);
    }
    return cases;
}

std::string options_of(const CLI::App& app) {
    std::string words;
    for (const CLI::Option* const option : shown_options(app)) {
        words += (words.empty() ? "" : " ") + words_of(*option, " ");
    }
    return words;
}

void write(const std::string& path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    if (file.close(), !file) {
        throw CommandError(finding, path + " cannot be written; name a writable folder");
    }
}

int write_manual(const CLI::App& app, const Settings& settings, const std::string& folder) {
    write(folder + "/tensorpool.1", overview_page(app));
    for (const CLI::App* const sub : shown_subcommands(app)) {
        write(folder + "/tensorpool-" + sub->get_name() + ".1", subcommand_page(*sub, settings));
    }
    write(folder + "/tensorpool-metrics.7", metrics_page());
    write(folder + "/tensorpool.bash", bash_completion(app));
    return success;
}

}  // namespace

std::string bash_completion(const CLI::App& app) {
    std::string names;
    std::string values;
    std::string options;
    for (const CLI::App* const sub : shown_subcommands(app)) {
        names += (names.empty() ? "" : " ") + sub->get_name();
        values += value_cases(*sub);
        options += fmt::format("        {}) words=\"{}\" ;;\n", sub->get_name(), options_of(*sub));
    }
    return fmt::format(
        "# Completion of tensorpool for bash, generated from its command-line declarations.\n"
        "_tensorpool() {{\n"
        "    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n"
        "    local sub=${{COMP_WORDS[1]}} words\n"
        "    COMPREPLY=()\n"
        "    if ((COMP_CWORD == 1)); then\n"
        "        COMPREPLY=($(compgen -W \"{} {}\" -- \"$word\"))\n"
        "        return\n"
        "    fi\n"
        "    case \"$sub $before\" in\n"
        "{}"
        "    esac\n"
        "    case $sub in\n"
        "{}"
        "    esac\n"
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
        "}}\n"
        "complete -F _tensorpool tensorpool\n",
        names, options_of(app), values, options);
}

CLI::App* add_manual(CLI::App& app, Settings& settings) {
    const auto folder = std::make_shared<std::string>();
    CLI::App* const command = add_subcommand(
        app, settings, {"manual", "Write the manual pages and the bash completion", "", ""},
        [&app, &settings, folder] { return write_manual(app, settings, *folder); });
    command->group("");
    command->add_option("folder", *folder, "The folder to write to")->required();
    return command;
}

}  // namespace tensorpool::command
