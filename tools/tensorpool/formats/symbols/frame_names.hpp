#pragma once

#include <fmt/format.h>

#include <array>
#include <climits>
#include <cstring>
#include <memory>
#include <string_view>
#include <unordered_map>

#include "common/posix.hpp"
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
    explicit CodeFile(const std::string& path) { open(path); }

    const std::string& problem() const noexcept { return problem_; }
    /// Returns the time of the last change in nanoseconds since 1970; 0 if it cannot be opened.
    std::uint64_t changed_unix_ns() const noexcept { return changed_unix_ns_; }
    /// Returns the location of an offset in the address space of the file's symbols.
    CodeLocation find(std::uint64_t offset) const;

private:
    struct Symbols;
    void open(const std::string& path) {
        if (!path.starts_with('/')) {
            problem_ = "is not an absolute path";
            return;
        }
        const Descriptor file = open_regular_file(path);
        struct stat about {};
        if (!file || ::fstat(file.number(), &about) != 0) {
            problem_ = errno == 0 ? "is not a regular file" : std::strerror(errno);
            return;
        }
        changed_unix_ns_ = static_cast<std::uint64_t>(about.st_mtim.tv_sec) * 1'000'000'000 +
                           static_cast<std::uint64_t>(about.st_mtim.tv_nsec);
        open_symbols(path, file.number());
    }
    void open_symbols(const std::string& path, int file);

    std::string problem_;
    std::uint64_t changed_unix_ns_ = 0;
    std::shared_ptr<Symbols> symbols_;  // shared, so that its type need not be known here
};

struct FrameName {
    std::string module;  ///< path
    std::uint64_t offset = 0;
    CodeLocation location;  ///< empty if unknown
    bool is_python = false;
    bool internal = false;  ///< part of an allocator, a standard library or a package of Python
};

// A real program allocates from a few thousand call sites.
inline constexpr std::size_t max_looked_up = 50'000;

inline constexpr std::string_view python_prefix = "python:";

inline std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

/// Returns whether a path is that of a shared library of tensorpool.
inline bool is_pools_library(std::string_view path) noexcept {
    return base_name(path).starts_with("libtensorpool");
}

inline bool is_internal(const FrameName& frame) {
    static constexpr std::array functions = {"operator new",
                                             "malloc",
                                             "calloc",
                                             "realloc",
                                             "posix_memalign",
                                             "aligned_alloc",
                                             "memalign",
                                             "std::",
                                             "void std::",
                                             "__gnu_cxx::",
                                             "void* std::",
                                             "tensorpool::Arena",
                                             "tensorpool::Memory",
                                             "tensorpool::detail::",
                                             "tensorpool::platform::",
                                             "tensorpool::trace::",
                                             "tensorpool::statistics::",
                                             "tensorpool::Scratch",
                                             "tensorpool::interpose::",
                                             "tensorpool::PoolAllocator",
                                             "tensorpool::Pooled",
                                             "tensorpool_"};
    if (is_pools_library(frame.module)) return true;
    return std::ranges::any_of(
        functions, [&](const char* start) { return frame.location.function.starts_with(start); });
}

/// Code of Python itself, of installed packages and of `tensorpool run`, or that they generated,
/// such as "<frozen os>" and "<__array_function__ internals>". The others in angle brackets are
/// code that a person typed.
inline bool is_library(std::string_view file) {
    static constexpr std::array places = {"/site-packages/", "/dist-packages/", "/lib/python3",
                                          "/sitecustomize.py"};
    static constexpr std::array typed = {"<stdin>", "<string>", "<ipython-input-"};
    const bool is_generated =
        file.starts_with('<') &&
        std::ranges::none_of(typed, [&](const char* start) { return file.starts_with(start); });
    return is_generated || std::ranges::any_of(places, [&](const char* place) {
               return file.find(place) != std::string_view::npos;
           });
}

/// Names a function of Python, which is recorded as "python:function@file" and a line.
inline void name_python(FrameName& name) {
    const std::string_view text = std::string_view(name.module).substr(python_prefix.size());
    const std::size_t at = text.rfind('@');
    name.location.function = text.substr(0, at);
    if (at != std::string_view::npos) name.location.file = text.substr(at + 1);
    name.location.line = static_cast<int>(std::min<std::uint64_t>(name.offset, INT_MAX));
    name.is_python = true;
    name.internal = is_library(name.location.file);
}

/// Finds the names of frames, and looks each frame up only once. Files that changed after the
/// recording began are not used, because their symbols may be wrong.
class FrameNames {
public:
    explicit FrameNames(const trace::Recording& recording) : recording_(recording) {}

    const FrameName& name(trace::RecordedFrame frame) {
        auto& names = names_[frame.module];
        const auto [at, is_new] = names.try_emplace(frame.offset);
        if (!is_new) return at->second;
        FrameName& name = at->second;
        name.offset = frame.offset;
        name.module = frame.module < recording_.modules.size()
                          ? recording_.modules[frame.module].path
                          : std::string("?");
        if (name.module.starts_with(python_prefix)) {
            name_python(name);
            return name;
        }
        if (looked_up_++ < max_looked_up) {
            if (const CodeFile* const file = file_of(frame.module)) {
                name.location = file->find(frame.offset);
            }
        }
        name.internal = is_internal(name);
        return name;
    }
    /// Returns a sentence for each module whose symbols could not be read.
    const std::vector<std::string>& problems() const noexcept { return problems_; }

private:
    CodeFile* file_of(std::uint32_t module) {
        if (module >= recording_.modules.size()) return nullptr;
        const std::string& path = recording_.modules[module].path;
        const auto [at, is_new] = files_.try_emplace(module, path);
        CodeFile& file = at->second;
        const bool is_newer =
            recording_.begun_unix_ns != 0 && file.changed_unix_ns() > recording_.begun_unix_ns;
        if (is_new && is_newer) {
            file = CodeFile("");  // no symbols are read from it
            problems_.push_back(fmt::format("{}: changed after the recording began", path));
        } else if (is_new && !file.problem().empty()) {
            problems_.push_back(fmt::format("{}: {}", path, file.problem()));
        }
        return file.problem().empty() ? &file : nullptr;
    }

    const trace::Recording& recording_;
    std::unordered_map<std::uint32_t, CodeFile> files_;  // by module
    std::unordered_map<std::uint64_t, std::unordered_map<std::uint64_t, FrameName>> names_;
    std::size_t looked_up_ = 0;
    std::vector<std::string> problems_;
};

inline constexpr std::string_view anonymous = "(anonymous namespace)";
inline constexpr std::string_view any_operator = "operator";

/// Returns the number of characters at the beginning that are kept, with any brackets in them.
inline std::size_t plain_characters(std::string_view text) {
    if (text.starts_with(anonymous)) return anonymous.size();
    if (!text.starts_with(any_operator)) return 0;
    const std::string_view symbol = text.substr(any_operator.size());
    if (symbol.starts_with("()")) return any_operator.size() + 2;
    const std::size_t length = symbol.find_first_not_of("<>=-!&|+*/%^~[],");
    return any_operator.size() + (length == std::string_view::npos ? symbol.size() : length);
}

inline std::string text_of(const FrameName& frame, std::string text) {
    const CodeLocation& location = frame.location;
    if (text.empty()) text = fmt::format("{}+{:#x}", base_name(frame.module), frame.offset);
    if (!location.file.empty())
        text += fmt::format(" at {}:{}", base_name(location.file), location.line);
    if (location.file.empty() && !location.function.empty()) {
        text += fmt::format(" in {}", base_name(frame.module));
    }
    return text;
}

inline bool is_systems(std::string_view path) {
    static constexpr std::array folders = {"/usr/lib/", "/usr/lib64/", "/lib/",        "/lib64/",
                                           "/usr/bin/", "/bin/",       "/usr/include/"};
    return std::ranges::any_of(folders,
                               [&](const char* folder) { return path.starts_with(folder); });
}

/// Whether this is a function that does not come with the system, or that a header of it defines.
inline bool is_persons(const FrameName& frame) {
    return frame.is_python || (!frame.location.function.empty() && !is_systems(frame.module) &&
                               !is_systems(frame.location.file));
}

/// Returns a demangled function name without its parameters and template arguments, such as
/// "std::vector<>::push_back".
inline std::string short_name(std::string_view function) {
    std::string name;
    unsigned angles = 0;
    unsigned rounds = 0;
    while (!function.empty()) {
        const bool is_outside = angles == 0 && rounds == 0;
        if (const std::size_t plain = is_outside ? plain_characters(function) : 0) {
            name += function.substr(0, plain);
            function.remove_prefix(plain);
            continue;
        }
        const char character = function.front();
        function.remove_prefix(1);
        if (character == '<' && angles++ == 0 && rounds == 0) name += "<>";
        if (character == '(') ++rounds;
        if (is_outside && character != '<' && character != '(') name += character;
        if (character == '>' && angles > 0) --angles;
        if (character == ')' && rounds > 0) --rounds;
    }
    return name;
}

/// Returns "function at file:line", or the known part of it, else "library.so+0x1234".
inline std::string to_text(const FrameName& frame) {
    return text_of(frame, frame.location.function);
}

/// Returns the name like `to_text`, but with the function's short name.
inline std::string to_short_text(const FrameName& frame) {
    const std::string& function = frame.location.function;
    return text_of(frame, frame.is_python ? function : short_name(function));
}

/// Returns the frames of a sampled stack from the first one outside of tensorpool's library; all of
/// them if there is none outside.
inline std::span<const trace::RecordedFrame> frames_of_caller(const trace::Recording& recording,
                                                              std::uint32_t stack) {
    const std::vector<trace::RecordedFrame>& frames = recording.stacks[stack];
    const auto is_own = [&](trace::RecordedFrame frame) {
        return frame.module < recording.modules.size() &&
               is_pools_library(recording.modules[frame.module].path);
    };
    const auto caller = std::ranges::find_if_not(frames, is_own);
    if (caller == frames.end()) return frames;
    return {caller, frames.end()};
}

/// Returns the innermost frame that is not internal, or the innermost if all are; nullptr if there
/// is no frame. In a Python program only Python frames count, since lines of the program are
/// sought. For the same reason, in other programs functions in files outside of the system's
/// folders come first.
inline const FrameName* line_of_program(
    std::span<const FrameName* const> innermost_first) noexcept {
    const FrameName* innermost = nullptr;
    const FrameName* chosen = nullptr;
    const auto is_better_than_chosen = [&](const FrameName& name) {
        if (chosen == nullptr || name.is_python != chosen->is_python) {
            return chosen == nullptr || name.is_python;
        }
        return is_persons(name) && !is_persons(*chosen);
    };
    for (const FrameName* const name : innermost_first) {
        if (innermost == nullptr || (name->is_python && !innermost->is_python)) innermost = name;
        if (!name->internal && is_better_than_chosen(*name)) chosen = name;
    }
    const bool is_better = chosen != nullptr && (chosen->is_python || !innermost->is_python);
    return is_better ? chosen : innermost;
}

}  // namespace tensorpool::command::symbols
