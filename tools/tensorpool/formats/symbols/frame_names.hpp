#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "formats/trace/recording.hpp"

namespace tensorpool::command::symbols {

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

/// Returns a demangled function name without its parameters and template arguments, such as
/// "std::vector<>::push_back".
std::string short_name(std::string_view function);

struct FrameName {
    std::string module;  ///< path
    std::uint64_t offset = 0;
    CodeLocation location;  ///< empty if unknown
    bool is_python = false;
    bool internal = false;  ///< part of an allocator, a standard library or a package of Python
};
/// Returns whether a path is that of a shared library of tensorpool.
bool is_pools_library(std::string_view path) noexcept;

/// Returns "function at file:line", or the known part of it, else "library.so+0x1234".
std::string to_text(const FrameName& frame);
/// Returns the name like `to_text`, but with the function's short name.
std::string to_short_text(const FrameName& frame);

/// Returns the frames of a sampled stack from the first one outside of tensorpool's library; all of
/// them if there is none outside.
std::span<const trace::RecordedFrame> frames_of_caller(const trace::Recording& recording,
                                                       std::uint32_t stack);

/// Returns the innermost frame that is not internal, or the innermost if all are; nullptr if there
/// is no frame. In a Python program only Python frames count, since lines of the program are
/// sought. For the same reason, in other programs functions in files outside of the system's
/// folders come first.
const FrameName* line_of_program(std::span<const FrameName* const> innermost_first) noexcept;

/// Finds the names of frames, and looks each frame up only once. Files that changed after the
/// recording began are not used, because their symbols may be wrong.
class FrameNames {
public:
    explicit FrameNames(const trace::Recording& recording) : recording_(recording) {}

    const FrameName& name(trace::RecordedFrame frame);
    /// Returns a sentence for each module whose symbols could not be read.
    const std::vector<std::string>& problems() const noexcept { return problems_; }

private:
    CodeFile* file_of(std::uint32_t module);

    const trace::Recording& recording_;
    std::unordered_map<std::uint32_t, CodeFile> files_;  // by module
    std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, FrameName>> names_;
    std::size_t looked_up_ = 0;
    std::vector<std::string> problems_;
};

}  // namespace tensorpool::command::symbols
