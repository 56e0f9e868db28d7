#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace tensorpool::command::inspect {

/// Where an address of code comes from.
struct CodePlace {
    std::string function;  ///< demangled; "": not known
    std::string file;      ///< of the source; "": not known
    int line = 0;
};

/// The symbols of a program or library, with elfutils' libdw where the project was built with it.
/// The path may come from a hostile trace: only a regular file is opened, nothing is executed, and
/// nothing is fetched over a network.
class CodeFile {
public:
    /// Why `path` has no symbols for us stands in `problem()` then.
    explicit CodeFile(const std::string& path);
    CodeFile(CodeFile&&) noexcept;
    CodeFile& operator=(CodeFile&&) noexcept;
    ~CodeFile();

    const std::string& problem() const noexcept { return problem_; }
    /// Changed last, in nanoseconds since 1970; 0 where it cannot be opened.
    std::uint64_t changed_unix_ns() const noexcept { return changed_unix_ns_; }
    /// `offset` as the file's symbols count.
    CodePlace find(std::uint64_t offset) const;

private:
    struct Symbols;
    void open(const std::string& path);
    void open_symbols(const std::string& path, int file);

    std::string problem_;
    std::uint64_t changed_unix_ns_ = 0;
    std::unique_ptr<Symbols> symbols_;
};

}  // namespace tensorpool::command::inspect
