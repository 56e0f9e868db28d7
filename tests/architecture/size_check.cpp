#include "architecture/size_check.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <tuple>

#include "architecture/class_members.hpp"
#include "architecture/source_files.hpp"

namespace tensorpool::architecture {
namespace {

namespace fs = std::filesystem;

constexpr const char* list_file = "tests/architecture/large_interfaces.txt";

struct Class {
    std::string file;
    ClassMembers members;
};

struct Listed {
    int line;
    bool needed = false;
};

std::string last_name(const std::string& name) {
    const std::size_t colon = name.rfind("::");
    return colon == name.npos ? name : name.substr(colon + 2);
}

std::size_t common_length(const std::string& a, const std::string& b) {
    return static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin());
}

bool is_public(const std::string& file) {
    return file.starts_with(header_folder) && !file.starts_with("include/tensorpool/detail/");
}

class Check {
public:
    explicit Check(const fs::path& root) : root_(root) {}

    std::vector<Violation> run() {
        read_list();
        read_classes();
        for (const Class& found : classes_) check_class(found);
        for (const char* const folder : {"lib", "include", "tests", "perf", "tools"})
            check_folders(folder);
        for (const auto& [name, listed] : listed_) {
            if (!listed.needed)
                add(list_file, listed.line,
                    "'" + name + "' is not over the limit: remove the line");
        }
        std::ranges::sort(found_, {}, [](const Violation& v) { return std::tie(v.file, v.line); });
        return std::move(found_);
    }

private:
    void add(const std::string& file, int line, std::string text) {
        found_.push_back({file, line, std::move(text)});
    }

    void read_list() {
        std::ifstream text(root_ / list_file);
        std::string line;
        for (int number = 1; std::getline(text, line); ++number) {
            std::istringstream words(line);
            std::string kind;
            std::string name;
            std::string reason;
            if (!(words >> kind) || kind.starts_with('#')) continue;
            words >> name;
            if (kind == "files") {
                std::string ending;
                words >> ending;
                name += " " + ending;
            } else if (kind != "class") {
                add(list_file, number, "'" + kind + "' is neither 'class' nor 'files'");
                continue;
            }
            if (!(words >> reason)) add(list_file, number, "'" + name + "' has no reason");
            listed_[name] = {number, false};
        }
    }

    void read_classes() {
        for (const char* const folder : {"lib", "include"}) {
            for (const std::string& file : sources_below(root_, folder)) read_classes_of(file);
        }
    }

    void read_classes_of(const std::string& file) {
        std::ostringstream text;
        text << std::ifstream(root_ / file).rdbuf();
        try {
            for (ClassMembers& members : classes_in(text.str()))
                classes_.push_back({file, std::move(members)});
        } catch (const std::runtime_error& error) {
            add(file, 0, std::string("cannot be read: ") + error.what());
        }
    }

    /// Returns the class that a base refers to: of those with its name, the one in the same file or
    /// in the namespace that is most alike; null if it belongs to another library.
    const Class* find_base(const Class& derived, const std::string& base) const {
        const Class* best = nullptr;
        std::pair<bool, std::size_t> best_likeness;
        for (const Class& other : classes_) {
            const std::string& name = other.members.name;
            if (last_name(name) != last_name(base) || &other == &derived) continue;
            if (base.starts_with("std::") || base.starts_with("boost::")) continue;
            const std::pair likeness(other.file == derived.file,
                                     common_length(name, derived.members.name));
            if (best && likeness <= best_likeness) continue;
            best = &other;
            best_likeness = likeness;
        }
        return best;
    }

    std::size_t functions_of(const Class& counted, std::set<const Class*>& seen) const {
        if (!seen.insert(&counted).second) return 0;
        std::size_t count = counted.members.functions.size() - counted.members.overrides.size();
        bool has_base = false;
        for (const std::string& name : counted.members.bases) {
            const Class* const base = find_base(counted, name);
            if (!base) continue;
            has_base = true;
            count += functions_of(*base, seen);
        }
        // What it overrides belongs to another library, and was not counted there.
        return has_base ? count : counted.members.functions.size();
    }

    void check_class(const Class& checked) {
        std::set<const Class*> seen;
        const std::size_t count = functions_of(checked, seen);
        if (count <= max_functions) return;
        const std::string& name = checked.members.name;
        const std::string text = "class " + name + " has " + std::to_string(count) +
                                 " member functions; at most " + std::to_string(max_functions);
        const auto listed = listed_.find(name);
        if (listed == listed_.end()) return add(checked.file, checked.members.line, text);
        listed->second.needed = true;
        if (is_public(checked.file)) return;
        add(checked.file, checked.members.line,
            text + ", and only public classes may be listed as interfaces");
    }

    void check_folders(const char* top) {
        std::map<std::string, std::size_t> counts;
        for (const std::string& file : sources_below(root_, top)) {
            const fs::path path(file);
            const std::string ending = path.extension().string();
            const bool is_test = path.stem().string().ends_with("_test");
            ++counts[path.parent_path().generic_string() + " " + (is_test ? "_test" : "") + ending];
        }
        for (const auto& [kind, count] : counts) {
            if (count <= max_files) continue;
            const std::size_t space = kind.find(' ');
            std::string text = "holds " + std::to_string(count) + " files *" +
                               kind.substr(space + 1) + "; at most " + std::to_string(max_files);
            if (const auto listed = listed_.find(kind); listed != listed_.end()) {
                listed->second.needed = true;
                if (kind.starts_with("include/")) continue;
                text += ", and only folders of public headers may be listed as interfaces";
            }
            add(kind.substr(0, space), 0, std::move(text));
        }
    }

    fs::path root_;
    std::vector<Class> classes_;
    std::map<std::string, Listed> listed_;
    std::vector<Violation> found_;
};

}  // namespace

std::vector<Violation> check_sizes(const fs::path& root) {
    return Check(root).run();
}

}  // namespace tensorpool::architecture
