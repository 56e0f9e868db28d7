#include "help/help_text.hpp"

#include <algorithm>
#include <fstream>

#include <tensorpool/metrics.hpp>

#include "common/options.hpp"

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

/// Returns the placeholders of the positional arguments, such as FILE.
std::vector<std::string> required_arguments(const CLI::App& app) {
    std::vector<std::string> words;
    for (const CLI::Option* const option : app.get_options()) {
        if (!option->nonpositional() && !option->get_option_text().empty())
            words.push_back(option->get_option_text());
    }
    return words;
}

std::string usage(const CLI::App& app) {
    const CLI::App* const parent = app.get_parent();
    std::string line = "Usage: " + (parent != nullptr ? parent->get_name() + ' ' : "");
    line += app.get_name();
    if (!shown_subcommands(app).empty()) return line + " SUBCOMMAND [OPTIONS]\n";
    for (const std::string& word : required_arguments(app)) line += ' ' + word;
    return line + " [OPTIONS]" + (app.get_prefix_command() ? " [--] PROGRAM [ARGUMENTS]\n" : "\n");
}

// The roff requests that begin and end verbatim lines.
constexpr const char* literal_begin = ".PP\n.RS 2\n.nf\n";
constexpr const char* literal_end = ".fi\n.RE\n";

/// Returns the head of a page: its name (such as "tensorpool-top"), its section, and a one-sentence
/// description.
std::string page_head(std::string_view name, int section_number, std::string_view sentence) {
    std::string title;
    for (const char c : name)
        title += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return fmt::format(".TH {} {} \"\" \"tensorpool {}\" \"tensorpool\"\n.SH NAME\n{} \\- {}\n",
                       roff(title), section_number, TENSORPOOL_VERSION, roff(name), roff(sentence));
}

std::string section(std::string_view title) {
    return fmt::format(".SH {}\n", roff(title));
}

/// Returns a bold name with an indented description below it.
std::string item(std::string_view name, std::string_view description) {
    return fmt::format(".TP\n\\fB{}\\fR\n{}\n", roff(name), roff(description));
}

std::string see_also(const CLI::App& app) {
    std::string names;
    for (const CLI::App* const sub : shown_subcommands(app)) {
        names += fmt::format(".BR tensorpool\\-{} (1),\n", roff(sub->get_name()));
    }
    return section("SEE ALSO") + names + ".BR tensorpool\\-metrics (7)\n";
}

std::string options(const CLI::App& app) {
    std::string text = section("OPTIONS");
    for (const CLI::Option* const option : shown_options(app)) {
        text += item(names_of(*option), option->get_description() + '.');
    }
    return text;
}

std::string statuses_of_look() {
    return item("0", "Success; no problem was found.") +
           item("1", "A problem was found, or the work could not be done.") +
           item("2", "The options are wrong, or match several processes.") +
           item("3", "The process does not exist, or has ended.") +
           item("4", "A model file is damaged or cannot be read.");
}

std::string statuses_of_program() {
    return item("2", "The options are wrong.") +
           item("125", "A requested part could not be enabled; the program was not started.") +
           item("126", "The program cannot be run.") + item("127", "The program was not found.") +
           item("any other",
                "The program's status. If a signal ended it, the same signal ends tensorpool.");
}

std::string pytorch_of(const MetricDescription& metric) {
    return *metric.pytorch == '\0' ? "" : fmt::format(" PyTorch: {}.", metric.pytorch);
}

/// Returns a shell expression that lists the values of an option by its placeholder, or nothing for
/// other placeholders. `compgen -W` performs shell expansion, including command substitution, so
/// process names with other characters than these are left out.
std::string values_of(const std::string& value) {
    constexpr const char* list = "$(tensorpool ls --json 2>/dev/null | sed -n ";
    if (value == "PID") return list + std::string("'s/^{\"process\":\\([0-9]*\\),.*/\\1/p')");
    if (value == "NAME") {
        return list + std::string(
                          "'s/^{\"process\":[0-9]*,\"name\":\"\\([A-Za-z0-9_.+-]*\\)\",.*/\\1/p')");
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

std::string overview_page(const CLI::App& app) {
    std::string text = page_head(app.get_name(), 1, "show where the memory of programs is");
    text += section("SYNOPSIS") + ".B tensorpool\n.I SUBCOMMAND\n[\\fIOPTIONS\\fR]\n";
    text += section("DESCRIPTION") + paragraphs(app.get_description());
    text += section("SUBCOMMANDS");
    for (const CLI::App* const sub : shown_subcommands(app)) {
        text += item("tensorpool " + sub->get_name(), sub->get_description() + '.');
    }
    text += options(app) + section("NOTES") + paragraphs(app.get_footer());
    return text + see_also(app);
}

std::string subcommand_page(const CLI::App& sub, const Settings& settings) {
    const std::string& name = sub.get_name();
    std::string sentence = sub.get_description();
    sentence[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(sentence[0])));
    std::string text = page_head("tensorpool-" + name, 1, sentence);
    text += section("SYNOPSIS") + fmt::format(".B tensorpool {}\n", roff(name));
    for (const std::string& word : required_arguments(sub))
        text += fmt::format(".I {}\n", roff(word));
    text += "[\\fIOPTIONS\\fR]\n";
    if (sub.get_prefix_command()) text += "[\\-\\-] \\fIPROGRAM\\fR [\\fIARGUMENTS\\fR]\n";
    text += section("DESCRIPTION") + paragraphs(sub.get_description() + '.');
    const auto details = settings.details.find(name);
    if (details != settings.details.end()) text += ".PP\n" + paragraphs(details->second);
    text += options(sub) + section("NOTES") + paragraphs(sub.get_footer());
    text += section("EXIT STATUS") +
            (sub.get_prefix_command() ? statuses_of_program() : statuses_of_look());
    return text + section("SEE ALSO") + ".BR tensorpool (1),\n.BR tensorpool\\-metrics (7)\n";
}

std::string metrics_page() {
    std::string text = page_head("tensorpool-metrics", 7, "the metrics of tensorpool");
    text += section("DESCRIPTION") +
            paragraphs(
                "The names are those of the fields in JSON and in C++. A gauge goes up and down, a "
                "total only grows, and a peak is the highest value so far. Metrics of devices end "
                "with PyTorch's name for them: a key of torch.cuda.memory_stats(), or the state of "
                "a block in its snapshots.");
    std::string_view of;
    for (const MetricDescription& metric : describe_metrics()) {
        if (of != metric.of) text += section(fmt::format("OF A {}", metric.of));
        of = metric.of;
        text += item(metric.name, fmt::format("({}, {}) {}{}", metric.kind, metric.unit,
                                              metric.sentence, pytorch_of(metric)));
    }
    return text + section("SEE ALSO") + ".BR tensorpool (1)\n";
}

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

std::string roff(std::string_view text) {
    std::string safe;
    if (text.starts_with('.') || text.starts_with('\'')) safe = "\\&";
    for (const char c : text) {
        if (c == '\\') {
            safe += "\\e";
        } else if (c == '-') {
            safe += "\\-";
        } else if (c == '`' || c == '\'') {
            safe += c == '`' ? "\\(ga" : "\\(aq";
        } else {
            safe += c;
        }
    }
    return safe;
}

std::string paragraphs(std::string_view text) {
    std::string made;
    bool literal = false;
    bool apart = false;
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
        const bool was_literal = std::exchange(literal, line.starts_with("  "));
        if (literal != was_literal) made += literal ? literal_begin : literal_end;
        if (apart && !line.empty() && !literal && !made.empty()) made += ".PP\n";
        apart = line.empty();
        if (!line.empty()) made += roff(literal ? line.substr(2) : line) + '\n';
    }
    return literal ? made + literal_end : made;
}

void add_manual(CLI::App& app, Settings& settings) {
    const auto folder = std::make_shared<std::string>();
    CLI::App* const command = add_subcommand(
        app, settings, {"manual", "Write the manual pages and the bash completion", "", ""},
        [&app, &settings, folder] { return write_manual(app, settings, *folder); });
    command->group("");
    command->add_option("folder", *folder, "The folder to write to")->required();
}

}  // namespace tensorpool::command
