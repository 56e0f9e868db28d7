#include "stress/devices/command_line.hpp"

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <stdexcept>
#include <string_view>

#include "stress/devices/planted_fault.hpp"

namespace tensorpool::stress::devices {
namespace {

constexpr const char* help =
    "device_stress: random programs over the caching and the pinned allocator of simulated\n"
    "devices: streams, events, copies, captures, pressure and faults. Every block is written and\n"
    "read, a model is compared, and the devices detect hazards. If something is wrong, reports\n"
    "it with the seed, schedule and operation, and exits with 1.\n\n"
    "  --operations N   operations for each seed and schedule (default 10000)\n"
    "  --seed N         seed (default 1)\n"
    "  --schedule WHAT  eager, lazy or random (default: one after the other)\n"
    "  --plant NAME     plants a fault that must be found; 'list' prints all names\n"
    "  --long           a million operations for each of the seeds 1, 2 and 3 and each schedule:\n"
    "                   before a release, and after any change to the device allocators\n";

std::uint64_t number_from(const std::string& text) {
    std::size_t used = 0;
    const std::uint64_t number = std::stoull(text, &used);
    if (used != text.size()) throw std::invalid_argument("not a number: " + text);
    return number;
}

Schedule schedule_from(const std::string& text) {
    for (const Schedule each : {Schedule::eager, Schedule::lazy, Schedule::random}) {
        if (text == to_string(each)) return each;
    }
    throw std::invalid_argument("expected eager, lazy or random, found " + text);
}

[[noreturn]] void print_and_exit() {
    std::fputs(help, stdout);
    std::exit(0);
}

[[noreturn]] void list_and_exit() {
    for (const PlantedFault& fault : planted_faults()) std::puts(fault.name);
    std::exit(0);
}

std::string fault_from(const std::string& text) {
    if (text == "list") list_and_exit();
    if (planted_fault(text) == nullptr) throw std::invalid_argument("no such fault: " + text);
    return text;
}

}  // namespace

const char* to_string(Schedule schedule) noexcept {
    switch (schedule) {
        case Schedule::eager:
            return "eager";
        case Schedule::lazy:
            return "lazy";
        case Schedule::random:
            return "random";
        case Schedule::replayed:
            return "replayed";
    }
    return "?";
}

CommandLine command_line_from(int count, char** arguments) {
    CommandLine line;
    const std::map<std::string_view, std::function<void(const std::string&)>> options = {
        {"--seed", [&](const std::string& text) { line.seeds = {number_from(text)}; }},
        {"--schedule", [&](const std::string& text) { line.schedules = {schedule_from(text)}; }},
        {"--operations", [&](const std::string& text) { line.operations = number_from(text); }},
        {"--plant", [&](const std::string& text) { line.plant = fault_from(text); }},
    };
    for (int i = 1; i < count; ++i) {
        const std::string_view name = arguments[i];
        if (name == "--help") print_and_exit();
        if (name == "--long") {
            line.seeds = {1, 2, 3};
            line.operations = 1'000'000;
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

}  // namespace tensorpool::stress::devices
