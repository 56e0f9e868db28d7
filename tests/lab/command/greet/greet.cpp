// A sample of a subcommand: this folder, and its name in a list.

#include <algorithm>
#include <cctype>
#include <memory>
#include <string>

#include "common/options.hpp"
#include "common/output.hpp"

namespace tensorpool::command {

void add_greet(CLI::App& app, Settings& settings) {
    struct Options {
        std::string name = "world";
        bool loud = false;
    };
    const auto options = std::make_shared<Options>();
    CLI::App* const command = add_subcommand(
        app, settings,
        {"greet", "Print a greeting", "Examples:\n  tensorpool greet --to you",
         "Prints one line.\n"},
        [options] {
            std::string text = "Hello, " + options->name + '!';
            const auto capital = [](unsigned char c) { return static_cast<char>(std::toupper(c)); };
            if (options->loud) std::ranges::transform(text, text.begin(), capital);
            print_line(text);
            return success;
        });
    add_option(*command, "--to NAME", options->name, "The name to greet (world)");
    // A sample of an option: this line, and the use of its value.
    command->add_flag("--loud", options->loud, "Greet in capitals");
}

}  // namespace tensorpool::command
