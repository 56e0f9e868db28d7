#include "command.hpp"

#include <fmt/format.h>

#include <exception>

#if defined(TENSORPOOL_COMMAND_HAS_SERVE)
#include "serve/serve.hpp"
#endif

namespace tensorpool::command {

std::unique_ptr<CLI::App> declare(Settings& settings) {
    auto app = std::make_unique<CLI::App>(
        "Shows where the memory of running programs is that use tensorpool.", "tensorpool");
    app->set_version_flag("--version", "tensorpool " TENSORPOOL_VERSION);
    app->require_subcommand(1);
#if defined(TENSORPOOL_COMMAND_HAS_SERVE)
    add_serve(*app, settings);
#endif
    return app;
}

int run_command(int count, const char* const* words) {
    Settings settings;
    const std::unique_ptr<CLI::App> app = declare(settings);
    try {
        app->parse(count, words);
        return settings.run ? settings.run() : success;
    } catch (const CLI::ParseError& error) {
        return app->exit(error) == 0 ? success : wrong_usage;
    } catch (const CommandError& error) {
        fmt::print(stderr, "tensorpool: {}\n", error.what());
        return error.code();
    } catch (const std::exception& error) {
        fmt::print(stderr, "tensorpool: {}\n", error.what());
        return finding;
    }
}

}  // namespace tensorpool::command
