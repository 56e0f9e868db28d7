#include <fstream>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "help/help_text.hpp"
#include "help/manual_pages.hpp"
#include "common/options.hpp"

namespace tensorpool::command {
namespace {

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

CLI::App* add_manual(CLI::App& app, Settings& settings) {
    CLI::App* const command =
        app.add_subcommand("manual", "Write the manual pages and the bash completion");
    command->group("");
    const auto folder = std::make_shared<std::string>();
    command->add_option("folder", *folder, "The folder to write to")->required();
    command->callback([&app, &settings, folder] {
        settings.run = [&app, &settings, folder] { return write_manual(app, settings, *folder); };
    });
    return command;
}

}  // namespace tensorpool::command
