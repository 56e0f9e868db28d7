#include "architecture/text_check.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <string>
#include <string_view>

#include "architecture/source_files.hpp"

namespace tensorpool::architecture {
namespace {

namespace fs = std::filesystem;

constexpr const char* readme = "README.md";
constexpr std::string_view ruled_out[] = {"whoever", "somebody", "nobody",   "for who",
                                          "is told", "are told", "as above", "as below"};

/// Returns the line in lower case, with one space for each run of other characters than letters,
/// and one on each side: a word is found with a space before and after it.
std::string words_of(const std::string& line) {
    std::string words = " ";
    for (const char c : line) {
        if (std::isalpha(static_cast<unsigned char>(c))) {
            words += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        } else if (words.back() != ' ') {
            words += ' ';
        }
    }
    return words + ' ';
}

/// Returns README.md and the documents of the folders, as paths relative to `root`.
std::vector<std::string> documents(const fs::path& root) {
    std::vector<std::string> found;
    if (fs::exists(root / readme)) found.emplace_back(readme);
    for (const char* const folder : {"lib", "include", "tests", "perf", "tools"}) {
        if (!fs::exists(root / folder)) continue;
        for (auto it = fs::recursive_directory_iterator(root / folder); it != fs::end(it); ++it) {
            const std::string path = fs::relative(it->path(), root).generic_string();
            const std::string name = it->path().filename().string();
            if (name == "node_modules" || path == "perf/results") it.disable_recursion_pending();
            if (name.ends_with(".md")) found.push_back(path);
        }
    }
    std::ranges::sort(found);
    return found;
}

/// Returns the names of C++ files between backquotes in a line of a document, but for patterns.
std::vector<std::string> named_files(const std::string& line) {
    std::vector<std::string> found;
    std::size_t begin = line.find('`');
    while (begin != line.npos) {
        const std::size_t end = line.find('`', begin + 1);
        if (end == line.npos) break;
        const std::string name = line.substr(begin + 1, end - begin - 1);
        const bool is_path = !name.starts_with('_') && name.find_first_of(" *<>{") == name.npos;
        if (is_path && (name.ends_with(".hpp") || name.ends_with(".cpp"))) found.push_back(name);
        begin = line.find('`', end + 1);
    }
    return found;
}

}  // namespace

std::vector<Violation> check_text(const fs::path& root) {
    std::vector<std::string> files = documents(root);
    std::vector<std::string> known;  // "/PATH" of each file that a document may name
    for (const char* const folder : {"lib", "include", "tests", "perf", "tools"}) {
        if (!fs::exists(root / folder)) continue;
        for (const std::string& file : sources_below(root, folder)) known.push_back('/' + file);
    }
    for (const char* const folder : {"lib", "include", "tools"}) {
        const std::vector<std::string> sources = sources_below(root, folder);
        files.insert(files.end(), sources.begin(), sources.end());
    }
    std::vector<Violation> found;
    for (const std::string& file : files) {
        const bool is_document = file.starts_with("lib/") && file.ends_with(".md");
        std::ifstream text(root / file);
        std::string line;
        int number = 0;
        while (std::getline(text, line)) {
            ++number;
            const std::string words = words_of(line);
            for (const std::string_view word : ruled_out) {
                if (words.find(" " + std::string(word) + " ") != words.npos)
                    found.push_back({file, number, "says '" + std::string(word) + "'"});
            }
            if (!is_document) continue;
            for (const std::string& name : named_files(line)) {
                const bool exists = std::ranges::any_of(
                    known, [&](const std::string& path) { return path.ends_with('/' + name); });
                if (!exists) found.push_back({file, number, "names '" + name + "', no file"});
            }
        }
        if (file == readme && number > static_cast<int>(max_readme_lines))
            found.push_back({file, number,
                             "has " + std::to_string(number) + " lines; at most " +
                                 std::to_string(max_readme_lines)});
    }
    return found;
}

}  // namespace tensorpool::architecture
