#include "architecture/source_files.hpp"

#include <regex>
#include <set>

namespace tensorpool::architecture {
namespace {

namespace fs = std::filesystem;

const std::regex include_line(R"re(^\s*#\s*include\s*([<"])([^>"]+)[>"].*)re");

bool is_source(const fs::path& file) {
    static const std::set<std::string> endings = {".hpp", ".cpp", ".h", ".c", ".ipp", ".inc"};
    return endings.contains(file.extension().string());
}

}  // namespace

std::optional<Include> include_of(const std::string& line) {
    std::smatch match;
    if (!std::regex_match(line, match, include_line)) return std::nullopt;
    return Include{match[1] == "\"", match[2]};
}

std::vector<std::string> sources_below(const fs::path& root, const char* folder) {
    std::vector<std::string> files;
    if (!fs::exists(root / folder)) return files;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / folder)) {
        if (!entry.is_regular_file() || !is_source(entry.path())) continue;
        files.push_back(entry.path().lexically_relative(root).generic_string());
    }
    return files;
}

std::optional<std::string> find_included(const fs::path& root, const std::string& file,
                                         const Include& include) {
    std::vector<fs::path> candidates = {fs::path("lib") / include.name,
                                        fs::path("include") / include.name};
    if (include.quoted)
        candidates.insert(candidates.begin(), fs::path(file).parent_path() / include.name);
    for (const fs::path& candidate : candidates) {
        const fs::path ours = candidate.lexically_normal();
        if (fs::is_regular_file(root / ours)) return ours.generic_string();
    }
    return std::nullopt;
}

}  // namespace tensorpool::architecture
