#include "pictures.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <stdexcept>

namespace tensorpool::photos {
namespace {

namespace fs = std::filesystem;

bool is_named_like_jpeg(const fs::path& file) {
    std::string extension = file.extension().string();
    std::ranges::transform(extension, extension.begin(),
                           [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    return extension == ".jpg" || extension == ".jpeg";
}

std::vector<fs::path> pictures_in(const fs::path& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
         entry.increment(error)) {
        if (is_named_like_jpeg(entry->path())) files.push_back(entry->path());
    }
    if (error) throw std::runtime_error(folder.string() + ": " + error.message());
    if (files.empty()) {
        throw std::runtime_error(folder.string() + ": contains no .jpg or .jpeg file");
    }
    std::ranges::sort(files);
    return files;
}

}  // namespace

std::vector<fs::path> find_pictures(const std::vector<std::string>& named) {
    std::error_code ignored;
    if (named.empty() && !fs::is_directory(nature_folder, ignored)) {
        throw std::runtime_error(
            std::string(nature_folder) +
            ": not found; install the package mate-backgrounds, or name pictures");
    }
    std::vector<fs::path> files;
    for (const std::string& name :
         named.empty() ? std::vector<std::string>{nature_folder} : named) {
        if (!fs::is_directory(name, ignored)) {
            files.emplace_back(name);
            continue;
        }
        const std::vector<fs::path> found = pictures_in(name);
        files.insert(files.end(), found.begin(), found.end());
    }
    return files;
}

std::vector<Picture> with_result_names(const std::vector<fs::path>& files) {
    std::vector<Picture> pictures;
    std::set<std::string> taken;
    for (const fs::path& file : files) {
        const std::string stem = file.stem().string();
        std::string result = stem + ".jpg";
        for (int number = 2; !taken.insert(result).second; ++number) {
            result = stem + "-" + std::to_string(number) + ".jpg";
        }
        pictures.push_back({file, result});
    }
    return pictures;
}

}  // namespace tensorpool::photos
