#include <tensorpool/model_hyperparameters.hpp>

#include <algorithm>
#include <cstdlib>

namespace tensorpool {
namespace {

constexpr std::size_t digits = 5;
constexpr std::string_view between = "-of-";

bool is_number(std::string_view text) {
    return text.size() == digits && std::ranges::all_of(text, [](char character) {
               return character >= '0' && character <= '9';
           });
}

}  // namespace

std::vector<std::string> files_of_model(const std::string& path) {
    const std::size_t dot = path.rfind('.');
    // "-00001-of-00003" before the file name extension.
    constexpr std::size_t length = 1 + digits + between.size() + digits;
    if (dot == std::string::npos || dot < length) return {path};
    const std::size_t begin = dot - length;
    const std::string_view mark = std::string_view(path).substr(begin, length);
    const std::string_view count = mark.substr(length - digits);
    if (mark[0] != '-' || !is_number(mark.substr(1, digits)) ||
        mark.substr(1 + digits, between.size()) != between || !is_number(count)) {
        return {path};
    }
    std::vector<std::string> files;
    const unsigned long number = std::strtoul(std::string(count).c_str(), nullptr, 10);
    for (unsigned long part = 1; part <= number; ++part) {
        std::string text = std::to_string(part);
        text.insert(0, digits - std::min(digits, text.size()), '0');
        files.push_back(path.substr(0, begin) + '-' + text + std::string(mark.substr(1 + digits)) +
                        path.substr(dot));
    }
    return files.empty() ? std::vector{path} : files;
}

}  // namespace tensorpool
