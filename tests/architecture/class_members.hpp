#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tensorpool::architecture {

/// A class or struct that a source file defines.
struct ClassMembers {
    std::string name;  ///< with its namespaces and enclosing classes, as in `tensorpool::Arena`
    int line = 0;      ///< line of the name, counted from 1
    std::vector<std::string> bases;  ///< as written, without template arguments
    /// Names of the member functions that the class declares: overloads, operators and static ones
    /// each, but no constructor, destructor, friend, or function that is defaulted or deleted.
    std::vector<std::string> functions;
    /// Those of `functions` that override one of a base.
    std::vector<std::string> overrides;
};

/// Returns the classes in the text of a file, without those inside of function bodies. Of each
/// `#if` only the first branch is read. Throws std::runtime_error if brackets do not match.
std::vector<ClassMembers> classes_in(std::string_view text);

}  // namespace tensorpool::architecture
