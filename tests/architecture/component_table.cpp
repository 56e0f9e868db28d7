#include "architecture/component_table.hpp"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <iterator>
#include <sstream>

namespace tensorpool::architecture {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_of(const std::string& text) {
    std::istringstream stream(text);
    return {std::istream_iterator<std::string>(stream), {}};
}

bool is_part_of_name(char character) {
    return std::isalnum(static_cast<unsigned char>(character)) != 0 || character == '_';
}

std::string without_comments(const std::string& text) {
    std::istringstream lines(text);
    std::string code;
    for (std::string line; std::getline(lines, line);)
        code += line.substr(0, line.find('#')) + '\n';
    return code;
}

bool is_source(const std::string& word) {
    return word.ends_with(".cpp") && word.find('$') == std::string::npos;
}

std::string text_of(const fs::path& file) {
    std::ifstream stream(file);
    return {std::istreambuf_iterator<char>(stream), {}};
}

/// Returns the first two parts of a path: lib/ and the layer.
std::string layer_of(const std::string& file) {
    return file.substr(0, file.find('/', file.find('/') + 1));
}

}  // namespace

ComponentTable ComponentTable::read(const fs::path& root) {
    ComponentTable table;
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(root / "lib")) {
        if (entry.path().filename() != "CMakeLists.txt") continue;
        table.add_list(entry.path().lexically_relative(root).generic_string(),
                       text_of(entry.path()));
    }
    return table;
}

// A call ends with the first closing parenthesis: the calls that are read here contain no nested
// one.
void ComponentTable::add_list(const std::string& list, const std::string& text) {
    const std::string code = without_comments(text);
    for (std::size_t open = code.find('('); open < code.size(); open = code.find('(', open + 1)) {
        const std::size_t end = std::min(code.find(')', open), code.size());
        std::size_t begin = open;
        while (begin > 0 && is_part_of_name(code[begin - 1])) --begin;
        const auto lines = std::count(code.begin(), code.begin() + static_cast<long>(begin), '\n');
        add_call(list, static_cast<int>(lines) + 1, code.substr(begin, open - begin),
                 words_of(code.substr(open + 1, end - open - 1)));
    }
}

void ComponentTable::add_call(const std::string& list, int line, const std::string& function,
                              const std::vector<std::string>& words) {
    if (words.empty()) return;
    if (function == "tensorpool_add_component") {
        needed_by_[words.front()].insert(words.begin() + 1, words.end());
        return;
    }
    const bool headers = function == "tensorpool_headers";
    const bool of_component = headers || function == "tensorpool_sources";
    const std::string component = of_component ? words.front() : "";
    const fs::path folder = headers ? fs::path("include/tensorpool") : fs::path(list).parent_path();
    for (auto word = words.begin() + (of_component ? 1 : 0); word != words.end(); ++word) {
        if (!headers && !is_source(*word)) continue;
        const std::string file = (folder / *word).lexically_normal().generic_string();
        named_.push_back({list, line, file, component, headers});
        if (!of_component) {
            components_.emplace(file, "");  // a part of another target
            continue;
        }
        components_[file] = component;
        if (!headers) of_layers_[layer_of(file)].insert(component);
    }
}

std::string ComponentTable::component_of(const std::string& file) const {
    const auto named = components_.find(file);
    if (named != components_.end()) return named->second;
    const auto beside = components_.find(fs::path(file).replace_extension(".cpp").generic_string());
    if (beside != components_.end()) return beside->second;
    const auto layer = of_layers_.find(layer_of(file));
    if (layer == of_layers_.end() || layer->second.size() != 1) return "";
    return *layer->second.begin();
}

bool ComponentTable::may_use(const std::string& component, const std::string& other) const {
    const auto needed = needed_by_.find(component);
    return component == other || needed == needed_by_.end() ||
           std::ranges::any_of(needed->second,
                               [&](const std::string& direct) { return may_use(direct, other); });
}

}  // namespace tensorpool::architecture
