#include "architecture/component_check.hpp"

#include <algorithm>
#include <fstream>
#include <set>
#include <tuple>

#include "architecture/component_table.hpp"
#include "architecture/source_files.hpp"

namespace tensorpool::architecture {
namespace {

namespace fs = std::filesystem;

class Check {
public:
    explicit Check(const fs::path& root) : root_(root), table_(ComponentTable::read(root)) {}

    std::vector<Violation> run() {
        check_names();
        for (const std::string& file : sources_below(root_, "lib")) {
            if (file.ends_with(".cpp")) check_source(file);
            check_includes(file);
        }
        for (const std::string& file : sources_below(root_, "include")) {
            check_header(file);
            check_includes(file);
        }
        std::ranges::sort(found_, {}, [](const Violation& v) { return std::tie(v.file, v.line); });
        return std::move(found_);
    }

private:
    void add(const std::string& file, int line, std::string text) {
        found_.push_back({file, line, std::move(text)});
    }

    void check_names() {
        for (const ComponentTable::Named& named : table_.named()) {
            if (fs::is_regular_file(root_ / named.file)) continue;
            add(named.list, named.line, "lists " + named.file + ", which does not exist");
        }
    }

    void check_source(const std::string& file) {
        const bool is_named = std::ranges::any_of(
            table_.named(), [&](const auto& named) { return named.file == file; });
        if (!is_named) add(file, 0, "is listed in no CMakeLists.txt, so no build contains it");
    }

    void check_header(const std::string& file) {
        const auto times = std::ranges::count_if(table_.named(), [&](const auto& named) {
            return named.is_header && named.file == file;
        });
        if (times == 1) return;
        add(file, 0,
            times == 0 ? "is listed in no tensorpool_headers(...), so it is not installed"
                       : "is listed in tensorpool_headers(...) more than once");
    }

    void check_includes(const std::string& file) {
        const std::string component = table_.component_of(file);
        if (component.empty()) return;
        std::ifstream text(root_ / file);
        std::string line;
        bool is_optional = false;
        for (int number = 1; std::getline(text, line); ++number) {
            if (line.starts_with("#endif")) is_optional = false;
            if (line.starts_with("#if __has_include")) is_optional = true;
            const std::optional<Include> include = include_of(line);
            if (include && !is_optional) check_include(file, number, component, *include);
        }
    }

    void check_include(const std::string& file, int number, const std::string& component,
                       const Include& include) {
        const std::optional<std::string> ours = find_included(root_, file, include);
        if (!ours) return;
        const std::string other = table_.component_of(*ours);
        if (other.empty() || table_.may_use(component, other)) return;
        // The facade over all kinds of records includes the tables of those that products own:
        // constants in headers, as layers.txt says.
        if (file.starts_with("lib/snapshot/") && ours->ends_with("_table.hpp")) return;
        add(file, number,
            "component " + component + " includes " + include.name + " of component " + other +
                ", which it does not need");
    }

    fs::path root_;
    ComponentTable table_;
    std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> check_components(const fs::path& root) {
    return Check(root).run();
}

}  // namespace tensorpool::architecture
