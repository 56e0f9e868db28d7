#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tensorpool::architecture {

/// What the CMakeLists.txt files in lib/ say: the files that they name, the component of each, and
/// what each component needs.
class ComponentTable {
public:
    /// A file that a CMakeLists.txt names.
    struct Named {
        std::string list;       ///< that CMakeLists.txt, below the project's root
        int line;               ///< from 1: where the call begins that names it
        std::string file;       ///< below the project's root
        std::string component;  ///< empty where the call is not of the library's components
        bool is_header;         ///< named by `tensorpool_headers`
    };

    /// Reads every CMakeLists.txt in lib/ below `root`.
    static ComponentTable read(const std::filesystem::path& root);

    const std::vector<Named>& named() const { return named_; }
    /// The component of a source or a header below the root; empty if it belongs to none alone.
    std::string component_of(const std::string& file) const;
    /// Returns true if the component is the other, or needs it, perhaps by way of a third.
    /// Nothing is known of a component that `tensorpool_add_component` does not name: true.
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
