#include "architecture/layer_check.hpp"

#include <algorithm>
#include <fstream>
#include <optional>
#include <regex>
#include <set>
#include <stdexcept>
#include <tuple>

#include "architecture/layer_table.hpp"
#include "architecture/source_files.hpp"

namespace tensorpool::architecture {
namespace {

namespace fs = std::filesystem;

const std::regex condition_line(R"re(^\s*#\s*(if|ifdef|ifndef|elif|elifdef|elifndef)\b.*)re");
const std::regex system_name(
    R"re(\b(_WIN32|_WIN64|__APPLE__|__MACH__|__linux__|__linux|__gnu_linux__|__unix__|__unix|)re"
    R"re(__FreeBSD__|__ANDROID__|TARGET_OS_\w+)\b)re");
const std::regex standard_header(R"re([a-z_0-9]+|std(def|int)\.h)re");

class Check {
public:
    explicit Check(const fs::path& root) : root_(root), table_(read_table("lib")) {}

    std::vector<Violation> run() {
        for (const auto& [header, layer] : table_.headers()) {
            if (fs::exists(root_ / header_folder / header)) continue;
            add("lib/layers.txt", 0, "header '" + header + "' does not exist");
        }
        for (const char* const folder : {"lib", "include"}) {
            for (const std::string& file : sources_below(root_, folder)) check_file(file);
        }
        if (fs::exists(root_ / command_folder)) check_command();
        std::ranges::sort(found_, {}, [](const Violation& v) { return std::tie(v.file, v.line); });
        return std::move(found_);
    }

private:
    static constexpr const char* command_folder = "tools/tensorpool";

    LayerTable read_table(const std::string& folder) const {
        const std::string file = folder + "/layers.txt";
        std::ifstream text(root_ / file);
        if (!text) throw std::runtime_error((root_ / file).string() + " cannot be read");
        return LayerTable::read(text, file);
    }

    /// Checks what the sources in the folders of the command include. The files beside these
    /// folders may include all of them.
    void check_command() {
        const LayerTable table = read_table(command_folder);
        for (const std::string& file : sources_below(root_, command_folder)) {
            const std::string folder = folder_in_command(file);
            if (folder.empty()) continue;
            std::ifstream text(root_ / file);
            std::string line;
            for (int number = 1; std::getline(text, line); ++number) {
                const std::optional<Include> include = include_of(line);
                if (include && include->quoted)
                    check_command_include(table, file, number, folder, include->name);
            }
        }
    }

    void check_command_include(const LayerTable& table, const std::string& file, int number,
                               const std::string& folder, const std::string& included) {
        fs::path ours = fs::path(command_folder) / included;
        if (!fs::is_regular_file(root_ / ours)) ours = fs::path(file).parent_path() / included;
        const std::string used = folder_in_command(ours.lexically_normal().generic_string());
        const std::string layer = table.has(folder) ? folder : "subcommand";
        const bool is_there = fs::is_regular_file(root_ / ours);
        if (!is_there || used == folder || (table.has(used) && table.may_use(layer, used))) return;
        add(file, number,
            (layer == folder ? "layer " : "subcommand ") + folder + " includes " + included +
                " of " + (used.empty() ? "the whole command" : used) +
                "; allowed: " + table.allowed(layer));
    }

    /// Returns the first folder below the command's; "" for a file that lies in none.
    static std::string folder_in_command(const std::string& file) {
        const fs::path below = fs::path(file).lexically_relative(command_folder);
        return std::next(below.begin()) == below.end() ? "" : below.begin()->string();
    }

    static std::string in_header_folder(const std::string& file) {
        return file.substr(header_folder.size());
    }

    /// Returns the folder of a file in lib, without "lib/".
    static std::string folder_of(const std::string& file) {
        return fs::path(file).parent_path().lexically_relative("lib").generic_string();
    }

    void add(const std::string& file, int line, std::string text) {
        found_.push_back({file, line, std::move(text)});
    }

    /// Returns the layer of a file; nullopt if layers.txt defines none.
    std::optional<std::string> layer_of(const std::string& file) const {
        if (file.starts_with(header_folder)) {
            const auto header = table_.headers().find(in_header_folder(file));
            if (header == table_.headers().end()) return std::nullopt;
            return header->second;
        }
        // Some folders of a layer have a line of their own.
        for (fs::path folder = folder_of(file); !folder.empty(); folder = folder.parent_path())
            if (table_.has(folder.generic_string())) return folder.generic_string();
        return std::nullopt;
    }

    void check_file(const std::string& file) {
        const std::optional<std::string> layer = layer_of(file);
        if (!layer) return add(file, 0, "belongs to no layer: lib/layers.txt has no line for it");
        std::ifstream text(root_ / file);
        std::string line;
        bool in_condition = false;
        for (int number = 1; std::getline(text, line); ++number) {
            const std::optional<Include> include = include_of(line);
            if (include) check_include(file, number, *layer, *include);
            in_condition = in_condition || std::regex_match(line, condition_line);
            if (in_condition) check_condition(file, number, *layer, line);
            in_condition = in_condition && line.ends_with('\\');
        }
    }

    void check_condition(const std::string& file, int number, const std::string& layer,
                         const std::string& line) {
        std::smatch match;
        if (layer == "platform" || !std::regex_search(line, match, system_name)) return;
        add(file, number,
            "layer " + layer + " names a system: " + match.str() + "; only platform may");
    }

    void check_include(const std::string& file, int number, const std::string& layer,
                       const Include& include) {
        const std::string& included = include.name;
        const auto say = [&](const std::string& what) {
            add(file, number, "layer " + layer + " includes " + included + what);
        };
        const std::optional<std::string> ours = find_included(root_, file, include);
        if (!ours) {
            if (include.quoted || included.starts_with("tensorpool/"))
                return say(", which does not exist");
            return check_foreign(file, layer, included, say);
        }
        const std::optional<std::string> used = layer_of(*ours);
        // A file without a layer is reported as a violation of its own.
        if (!used || table_.may_include_file(layer, *used, *ours)) return;
        say(" of layer " + *used + "; allowed: " + table_.allowed(layer));
    }

    template <class Say>
    void check_foreign(const std::string& file, const std::string& layer,
                       const std::string& included, const Say& say) const {
        if (std::regex_match(included, standard_header)) return;
        const bool is_public = file.starts_with("include/");
        if (included.starts_with("boost/")) {
            if (is_public) say("; no public header may include Boost");
            return;
        }
        if (is_public) {
            if (table_.may_include(in_header_folder(file), included)) return;
            return say(
                "; a public header may include only standard headers and ours, and of other "
                "libraries what its line in lib/layers.txt names");
        }
        if (layer != "platform" && !table_.folder_may_include(folder_of(file), included))
            say("; only platform may include what is not standard C++ or Boost");
    }

    fs::path root_;
    LayerTable table_;
    std::vector<Violation> found_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Violation& violation) {
    return out << violation.file << ':' << violation.line << ": " << violation.text;
}

std::vector<Violation> check_layers(const fs::path& root) {
    return Check(root).run();
}

}  // namespace tensorpool::architecture
