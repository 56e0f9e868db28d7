#include "common/options.hpp"

#include <CLI/CLI.hpp>

namespace tensorpool::command {

CLI::App* add_serve(CLI::App& app, Settings& settings) {
    CLI::App* serve =
        app.add_subcommand("serve", "Serve a live page and Prometheus metrics (not built)");
    serve->allow_extras();  // all arguments give the same answer
    serve->add_flag("--json", settings.json, "Print the address as JSON");
    serve->footer("Examples:\n  tensorpool serve     reports which libraries were missing");
    serve->callback([&settings] {
        settings.run = []() -> int {
            throw CommandError(
                finding,
                "serve: not built in, because libraries were missing: install the Debian "
                "packages " TENSORPOOL_COMMAND_SERVE_MISSING " and rebuild");
        };
    });
    return serve;
}

}  // namespace tensorpool::command
