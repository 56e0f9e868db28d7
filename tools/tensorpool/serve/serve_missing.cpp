#include "subcommands.hpp"

#include <CLI/CLI.hpp>

namespace tensorpool::command {

CLI::App* add_serve(CLI::App& app, Settings& settings) {
    CLI::App* serve =
        app.add_subcommand("serve", "Show it all in a browser, and to Prometheus (not built)");
    serve->allow_extras();  // whatever was asked for, the answer is the same
    serve->add_flag("--json", settings.json, "Print the address as JSON");
    serve->footer("Examples:\n  tensorpool serve     tells which libraries were missing");
    serve->callback([&settings] {
        settings.run = []() -> int {
            throw CommandError(
                finding,
                "serve: not built in, for libraries were missing: install the Debian "
                "packages " TENSORPOOL_COMMAND_SERVE_MISSING " and build again");
        };
    });
    return serve;
}

}  // namespace tensorpool::command
