#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tensorpool::command::symbols {

/// The source location of a code address.
struct CodeLocation {
    std::string function;  ///< demangled; "": unknown
    std::string file;      ///< source file; "": unknown
    int line = 0;
};

/// The symbols of a program or library, read with elfutils' libdw if the project was built with it.
/// The path may come from a hostile trace, so only a regular file is opened, nothing is executed,
/// and nothing is fetched over a network.
class CodeFile {
public:
    /// Opens the file. If it has no readable symbols, `problem()` is the reason.
    explicit CodeFile(const std::string& path);
    CodeFile(CodeFile&&) noexcept;
    CodeFile& operator=(CodeFile&&) noexcept;
    ~CodeFile();

    const std::string& problem() const noexcept { return problem_; }
    /// Returns the time of the last change in nanoseconds since 1970; 0 if it cannot be opened.
    std::uint64_t changed_unix_ns() const noexcept { return changed_unix_ns_; }
    /// Returns the location of an offset in the address space of the file's symbols.
    CodeLocation find(std::uint64_t offset) const;

private:
    struct Symbols;
    void open(const std::string& path);
    void open_symbols(const std::string& path, int file);

    std::string problem_;
    std::uint64_t changed_unix_ns_ = 0;
    std::unique_ptr<Symbols> symbols_;
};

}  // namespace tensorpool::command::symbols
