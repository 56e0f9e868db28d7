#include "options.hpp"

#include <charconv>
#include <stdexcept>

namespace tensorpool::photos {
namespace {

constexpr int max_rounds = 99;
constexpr int max_threads = 1024;

int parse_number(const std::string& option, const std::string& text, int max) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end && number >= 1 && number <= max) return number;
    throw std::invalid_argument(option + ": \"" + text + "\" is not a number from 1 to " +
                                std::to_string(max));
}

}  // namespace

Options parse_options(const std::vector<std::string>& arguments) {
    Options options;
    options.output = TENSORPOOL_PHOTOS_OUTPUT;
    bool only_pictures = false;
    for (auto argument = arguments.begin(); argument != arguments.end(); ++argument) {
        const auto value = [&] {
            if (argument + 1 == arguments.end())
                throw std::invalid_argument(*argument + ": a value is missing");
            return *++argument;
        };
        const std::string option = *argument;
        if (only_pictures || option.empty() || option[0] != '-') {
            options.pictures.push_back(option);
        } else if (option == "--") {
            only_pictures = true;
        } else if (option == "--help" || option == "-h") {
            options.help = true;
        } else if (option == "--rounds") {
            options.rounds = parse_number(option, value(), max_rounds);
        } else if (option == "--threads") {
            options.threads = parse_number(option, value(), max_threads);
        } else if (option == "--frugal") {
            options.frugal = true;
        } else if (option == "--output") {
            options.output = value();
        } else if (option == "--work") {
            options.work = value();
        } else {
            throw std::invalid_argument(option + ": unknown option; --help lists the options");
        }
    }
    return options;
}

std::string usage() {
    return "usage: tensorpool_photos [--rounds N] [--threads N] [--frugal] [--output DIR] [--]\n"
           "                         [PICTURE|FOLDER]...\n"
           "\n"
           "Develops photographs (denoise, sharpen, boost detail, in floats, with OpenCV) with\n"
           "memory from malloc, from tcmalloc if it is installed, from the pool, and from a\n"
           "Context (arena and scratch), each in a process of its own. Checks that the results\n"
           "are identical, and prints the resource usage of each, and the scratch memory of each\n"
           "operator.\n"
           "\n"
           "  PICTURE|FOLDER  JPEG files, or folders of them; default: the nature photographs\n"
           "                  in Debian's package mate-backgrounds\n"
           "  --rounds N      run everything N times and print medians; default 3\n"
           "  --threads N     threads that OpenCV may use; default 1\n"
           "  --frugal        use the Context's operators, which hold less memory, for all\n"
           "  --output DIR    folder for the results, with a folder for each allocator; default\n"
           "                  " TENSORPOOL_PHOTOS_OUTPUT
           "\n"
           "\n"
           "Exit status: 0; 1 if a picture or a run failed or results differ; 2 for wrong "
           "usage.\n";
}

}  // namespace tensorpool::photos
