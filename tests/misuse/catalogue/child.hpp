#pragma once

#include <string>

namespace tensorpool::misuse {

/// A process that runs one case in one mode.
class Child {
public:
    // The exit statuses of a case that neither ends normally nor is stopped.
    static constexpr int harmless = 3;
    static constexpr int thrown = 4;

    /// Runs this program with the case and the mode as its arguments, and `preload`, if it is not
    /// null, in LD_PRELOAD. Returns when it has ended.
    Child(const char* name, const std::string& mode, const char* preload);
    /// Returns how it ended, in the words of catalogue.hpp. A report that does not have the
    /// documented form, and output of a program that nothing stopped, are an outcome of their own.
    std::string outcome() const;

private:
    int status_ = 0;
    std::string errors_;
};

}  // namespace tensorpool::misuse
