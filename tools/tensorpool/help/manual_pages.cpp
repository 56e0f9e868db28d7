#include "help/manual_pages.hpp"

#include <CLI/CLI.hpp>

#include <fmt/format.h>

#include <tensorpool/metrics.hpp>

#include "help/help_text.hpp"
#include "help/roff.hpp"

namespace tensorpool::command {
namespace {

std::string see_also(const CLI::App& app) {
    std::string names;
    for (const CLI::App* const sub : shown_subcommands(app)) {
        names += fmt::format(".BR tensorpool\\-{} (1),\n", roff(sub->get_name()));
    }
    return section("SEE ALSO") + names + ".BR tensorpool\\-figures (7)\n";
}

std::string options(const CLI::App& app) {
    std::string text = section("OPTIONS");
    for (const CLI::Option* const option : shown_options(app)) {
        text += item(names_of(*option), option->get_description() + '.');
    }
    return text;
}

std::string statuses_of_look() {
    return item("0", "Nothing was found to be wrong.") +
           item("1", "Something was found, or could not be done.") +
           item("2", "The options are wrong, or fit several processes.") +
           item("3", "The process is not there, or no longer.") +
           item("4", "A model's file is damaged, or cannot be read.");
}

std::string statuses_of_program() {
    return item("2", "The options are wrong.") +
           item("125",
                "Something that was asked for could not be done; the program did not begin.") +
           item("126", "The program cannot be run.") + item("127", "There is no such program.") +
           item("any other",
                "The program's. Where a signal ended it, the same one ends tensorpool.");
}

std::string pytorch_of(const MetricDescription& metric) {
    return *metric.pytorch == '\0' ? "" : fmt::format(" PyTorch: {}.", metric.pytorch);
}

}  // namespace

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
    for (const std::string& word : needed_words(sub)) text += fmt::format(".I {}\n", roff(word));
    text += "[\\fIOPTIONS\\fR]\n";
    if (sub.get_prefix_command()) text += "[\\-\\-] \\fIPROGRAM\\fR [\\fIWORDS\\fR]\n";
    text += section("DESCRIPTION") + paragraphs(sub.get_description() + '.');
    const auto details = settings.details.find(name);
    if (details != settings.details.end()) text += ".PP\n" + paragraphs(details->second);
    text += options(sub) + section("NOTES") + paragraphs(sub.get_footer());
    text += section("EXIT STATUS") +
            (sub.get_prefix_command() ? statuses_of_program() : statuses_of_look());
    return text + section("SEE ALSO") + ".BR tensorpool (1),\n.BR tensorpool\\-figures (7)\n";
}

std::string figures_page() {
    std::string text = page_head("tensorpool-figures", 7, "what each figure of tensorpool means");
    text += section("DESCRIPTION") +
            paragraphs(
                "Names are those of the fields in JSON and in C++. A gauge goes up and "
                "down, a total only grows, a peak is the highest so far. Of devices, what PyTorch "
                "calls a figure stands behind it: a key of torch.cuda.memory_stats(), or the state "
                "of a block in its snapshots.");
    std::string_view of;
    for (const MetricDescription& metric : describe_metrics()) {
        if (of != metric.of) text += section(fmt::format("OF A {}", metric.of));
        of = metric.of;
        text += item(metric.name, fmt::format("({}, {}) {}{}", metric.kind, metric.unit,
                                              metric.sentence, pytorch_of(metric)));
    }
    return text + section("SEE ALSO") + ".BR tensorpool (1)\n";
}

}  // namespace tensorpool::command
