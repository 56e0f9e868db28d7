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
    "pool_stress: several pools, with threads that start, end and hand each other blocks.\n"
    "Every block is written when it is allocated and verified when it is freed. At the end all\n"
    "statistics must be back at zero. If something is wrong, reports it and exits with 1.\n\n"
    "  --rounds N    rounds, each with new pools (default 2)\n"
    "  --minutes N   runs rounds for N minutes, each with the next seed: the long form\n"
    "  --seed N      seed of the first round (default 1)\n"
    "  --threads N   concurrent threads, besides one that trims, reserves and reads (default 3)\n"
    "  --lives N     threads that run one after another in place of each (default 8)\n"
    "  --calls N     calls of each of them (default 2000)\n"
    "  --shards N    shards, between which threads move at every call (default: by processors)\n"
    "  --map         also keeps a map of all blocks in use, under a lock\n"
    "  --plant WHAT  plants a fault that must be found: twice, forget, dirt or lose\n\n"
    "Run the long form before a release, and after any change to lock-free code:\n"
    "  pool_stress --minutes 20 && pool_stress --minutes 20 --map\n"
    "  pool_stress --minutes 20 --shards 4\n";

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
        {"--shards", to(line.shards)},
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
                                        std::string(name) + "; --help lists the options");
        }
        option->second(arguments[i]);
    }
    return line;
}

}  // namespace tensorpool::stress
