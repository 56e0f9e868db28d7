#include "options.hpp"

#include <charconv>
#include <stdexcept>

namespace tensorpool::photos {
namespace {

constexpr int max_rounds = 99;
constexpr int max_threads = 1024;

int parse_number(const std::string& option, const std::string& text, int most) {
    int number = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && stop == end && number >= 1 && number <= most) return number;
    throw std::invalid_argument(option + ": \"" + text + "\" is not a number from 1 to " +
                                std::to_string(most));
}

}  // namespace

Options parse_options(const std::vector<std::string>& words) {
    Options options;
    options.output = TENSORPOOL_PHOTOS_OUTPUT;
    bool only_pictures = false;
    for (auto word = words.begin(); word != words.end(); ++word) {
        const auto value = [&] {
            if (word + 1 == words.end())
                throw std::invalid_argument(*word + ": a value is missing");
            return *++word;
        };
        const std::string option = *word;
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
            throw std::invalid_argument(option + ": no such option; --help lists them");
        }
    }
    return options;
}

std::string usage() {
    return "usage: tensorpool_photos [--rounds N] [--threads N] [--frugal] [--output DIR] [--]\n"
           "                         [PICTURE|FOLDER]...\n"
           "\n"
           "Develops photographs (denoise, sharpen, boost detail, in floats, with OpenCV) with\n"
           "pictures' memory from malloc, from tcmalloc where it is installed, from the pool, and\n"
           "from a Context (arena and scratch), each in a process of its own; checks that the\n"
           "results are the same bit for bit, and prints what each took, and what each operator\n"
           "needed.\n"
           "\n"
           "  PICTURE|FOLDER  JPEG files, and folders of them; default: the photographs of nature\n"
           "                  in Debian's package mate-backgrounds\n"
           "  --rounds N      run all of it N times and print medians; default 3\n"
           "  --threads N     threads that OpenCV may use; default 1\n"
           "  --frugal        all contenders hold as little at once as the Context's operators do\n"
           "  --output DIR    where the results go, in a folder for each allocator; default\n"
           "                  " TENSORPOOL_PHOTOS_OUTPUT
           "\n"
           "\n"
           "Exit status: 0, 1 when a picture or a run failed or results differ, 2 for wrong "
           "usage.\n";
}

}  // namespace tensorpool::photos
