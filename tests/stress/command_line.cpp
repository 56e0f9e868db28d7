#include "stress/command_line.hpp"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

namespace tensorpool::stress {
namespace {

constexpr const char* help =
    "pool_stress: several pools under threads that come and go and hand each other blocks.\n"
    "Every block is written when it is made and verified when it is freed; at the end all\n"
    "figures must be back at zero. Exits with 1 when something is wrong and says what.\n\n"
    "  --rounds N    rounds with new pools each (default 2)\n"
    "  --minutes N   rounds until N minutes are over, each with the next seed: the long form\n"
    "  --seed N      of the first round (default 1)\n"
    "  --threads N   at once, beside one that trims, reserves and looks (default 3)\n"
    "  --lives N     threads that follow one another in the place of each (default 8)\n"
    "  --calls N     of each of them (default 2000)\n"
    "  --map         also keeps a map of all blocks in use, under a lock\n"
    "  --plant WHAT  plants a fault that must be found: twice, forget, dirt or lose\n\n"
    "The long form, before a release and after any change to what is lock-free:\n"
    "  pool_stress --minutes 20 && pool_stress --minutes 20 --map\n";

std::uint64_t number_from(const std::string& text) {
    std::size_t used = 0;
    const std::uint64_t number = std::stoull(text, &used);
    if (used != text.size()) throw std::invalid_argument("not a number: " + text);
    return number;
}

}  // namespace

CommandLine command_line_from(int count, char** arguments) {
    CommandLine line;
    const auto to = [](unsigned& option) {
        return [&option](const std::string& text) {
            option = static_cast<unsigned>(number_from(text));
        };
    };
    const std::map<std::string_view, std::function<void(const std::string&)>> options = {
        {"--seed", [&](const std::string& text) { line.seed = number_from(text); }},
        {"--rounds", to(line.rounds)},
        {"--minutes", to(line.minutes)},
        {"--threads", to(line.threads)},
        {"--lives", to(line.lives)},
        {"--calls", to(line.calls)},
        {"--plant", [&](const std::string& text) { line.plant = text; }},
    };
    for (int i = 1; i < count; ++i) {
        const std::string_view name = arguments[i];
        if (name == "--help") {
            std::fputs(help, stdout);
            std::exit(0);
        }
        if (name == "--map") {
            line.map = true;
            continue;
        }
        const auto option = options.find(name);
        if (option == options.end() || ++i == count) {
            throw std::invalid_argument("expected an option and its value, found " +
                                        std::string(name) + "; --help tells the options");
        }
        option->second(arguments[i]);
    }
    return line;
}

}  // namespace tensorpool::stress
