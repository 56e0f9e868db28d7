#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tensorpool::architecture {

/// What the CMakeLists.txt files in lib/ define: the files that they list, the component of each,
/// and which components each component needs.
class ComponentTable {
public:
    /// A file that a CMakeLists.txt lists.
    struct Named {
        std::string list;       ///< that CMakeLists.txt, relative to the project's root
        int line;               ///< line of the call that lists the file, counted from 1
        std::string file;       ///< relative to the project's root
        std::string component;  ///< empty if the call does not define a component of the library
        bool is_header;         ///< listed by `tensorpool_headers`
    };

    /// Reads every CMakeLists.txt in lib/ below `root`.
    static ComponentTable read(const std::filesystem::path& root);

    const std::vector<Named>& named() const { return named_; }
    /// Returns the component of a source or a header; empty if it belongs to none or several.
    std::string component_of(const std::string& file) const;
    /// Returns true if the component is the other one or needs it, directly or indirectly. Also
    /// returns true for a component that no `tensorpool_add_component` defines, about which nothing
    /// is known.
    bool may_use(const std::string& component, const std::string& other) const;

private:
    void add_list(const std::string& list, const std::string& text);
    void add_call(const std::string& list, int line, const std::string& function,
                  const std::vector<std::string>& words);

    std::vector<Named> named_;
    std::map<std::string, std::string> components_;
    std::map<std::string, std::set<std::string>> of_layers_;
    std::map<std::string, std::set<std::string>> needed_by_;
};

}  // namespace tensorpool::architecture
