#include "doctor/page_sizes.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "doctor/first_touch.hpp"

namespace tensorpool::command {

std::string chosen_word(const std::filesystem::path& path) {
    std::string line;
    std::ifstream file(path);
    std::getline(file, line);
    const std::size_t begin = line.find('[');
    const std::size_t end = line.find(']');
    return begin == std::string::npos || end < begin ? "" : line.substr(begin + 1, end - begin - 1);
}

std::vector<PageSizeSetting> read_page_sizes(const std::filesystem::path& folder) {
    const std::string common = chosen_word(folder / "enabled");
    std::vector<PageSizeSetting> sizes;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
        unsigned long kib = 0;
        const std::string name = entry.path().filename().string();
        if (std::sscanf(name.c_str(), "hugepages-%lukB", &kib) != 1) continue;
        PageSizeSetting size{.bytes = std::uint64_t{kib} * 1024,
                             .word = chosen_word(entry.path() / "enabled")};
        if (size.word.empty()) continue;  // not a setting for anonymous memory
        const std::string& counts = size.word == "inherit" ? common : size.word;
        size.given = counts == "always" || counts == "madvise";
        sizes.push_back(std::move(size));
    }
    std::ranges::sort(sizes, {}, &PageSizeSetting::bytes);
    return sizes;
}

void measure_page_sizes(std::vector<PageSizeSetting>& sizes) {
    for (PageSizeSetting& size : sizes) {
        if (size.given) size.fault_ns = measure_first_touch_ns(size.bytes);
    }
}

}  // namespace tensorpool::command
