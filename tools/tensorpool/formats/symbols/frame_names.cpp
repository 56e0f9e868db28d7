#include "formats/symbols/frame_names.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <array>
#include <climits>
#include <cstring>

#include "common/posix.hpp"

namespace tensorpool::command::symbols {
namespace {

constexpr std::string_view anonymous = "(anonymous namespace)";
constexpr std::string_view any_operator = "operator";

/// Returns the number of characters at the beginning that are kept, with any brackets in them.
std::size_t plain_characters(std::string_view text) {
    if (text.starts_with(anonymous)) return anonymous.size();
    if (!text.starts_with(any_operator)) return 0;
    const std::string_view symbol = text.substr(any_operator.size());
    if (symbol.starts_with("()")) return any_operator.size() + 2;
    const std::size_t length = symbol.find_first_not_of("<>=-!&|+*/%^~[],");
    return any_operator.size() + (length == std::string_view::npos ? symbol.size() : length);
}

// A real program allocates from a few thousand call sites.
constexpr std::size_t max_looked_up = 50'000;

constexpr std::string_view python_prefix = "python:";

std::string_view base_name(std::string_view path) {
    return path.substr(path.rfind('/') + 1);
}

bool is_internal(const FrameName& frame) {
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

std::string text_of(const FrameName& frame, std::string text) {
    const CodeLocation& location = frame.location;
    if (text.empty()) text = fmt::format("{}+{:#x}", base_name(frame.module), frame.offset);
    if (!location.file.empty())
        text += fmt::format(" at {}:{}", base_name(location.file), location.line);
    if (location.file.empty() && !location.function.empty()) {
        text += fmt::format(" in {}", base_name(frame.module));
    }
    return text;
}

/// Code of Python itself, of installed packages and of `tensorpool run`, or that they generated,
/// such as "<frozen os>" and "<__array_function__ internals>". The others in angle brackets are
/// code that a person typed.
bool is_library(std::string_view file) {
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

bool is_systems(std::string_view path) {
    static constexpr std::array folders = {"/usr/lib/", "/usr/lib64/", "/lib/",        "/lib64/",
                                           "/usr/bin/", "/bin/",       "/usr/include/"};
    return std::ranges::any_of(folders,
                               [&](const char* folder) { return path.starts_with(folder); });
}

/// Whether this is a function that does not come with the system, or that a header of it defines.
bool is_persons(const FrameName& frame) {
    return frame.is_python || (!frame.location.function.empty() && !is_systems(frame.module) &&
                               !is_systems(frame.location.file));
}

/// Names a function of Python, which is recorded as "python:function@file" and a line.
void name_python(FrameName& name) {
    const std::string_view text = std::string_view(name.module).substr(python_prefix.size());
    const std::size_t at = text.rfind('@');
    name.location.function = text.substr(0, at);
    if (at != std::string_view::npos) name.location.file = text.substr(at + 1);
    name.location.line = static_cast<int>(std::min<std::uint64_t>(name.offset, INT_MAX));
    name.is_python = true;
    name.internal = is_library(name.location.file);
}

}  // namespace

void CodeFile::open(const std::string& path) {
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

std::string short_name(std::string_view function) {
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

bool is_pools_library(std::string_view path) noexcept {
    return base_name(path).starts_with("libtensorpool");
}

std::string to_text(const FrameName& frame) {
    return text_of(frame, frame.location.function);
}

std::string to_short_text(const FrameName& frame) {
    const std::string& function = frame.location.function;
    return text_of(frame, frame.is_python ? function : short_name(function));
}

std::span<const trace::RecordedFrame> frames_of_caller(const trace::Recording& recording,
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

const FrameName* line_of_program(std::span<const FrameName* const> innermost_first) noexcept {
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

const FrameName& FrameNames::name(trace::RecordedFrame frame) {
    auto& names = names_[frame.module];
    const auto [at, is_new] = names.try_emplace(frame.offset);
    if (!is_new) return at->second;
    FrameName& name = at->second;
    name.offset = frame.offset;
    name.module = frame.module < recording_.modules.size() ? recording_.modules[frame.module].path
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

CodeFile* FrameNames::file_of(std::uint32_t module) {
    if (module >= recording_.modules.size()) return nullptr;
    const std::string& path = recording_.modules[module].path;
    const auto found = files_.find(module);
    if (found != files_.end()) {
        return found->second.problem().empty() ? &found->second : nullptr;
    }
    CodeFile& file = files_.try_emplace(module, path).first->second;
    const bool is_newer =
        recording_.begun_unix_ns != 0 && file.changed_unix_ns() > recording_.begun_unix_ns;
    if (is_newer) {
        file = CodeFile("");  // no symbols are read from it
        problems_.push_back(fmt::format("{}: changed after the recording began", path));
    } else if (!file.problem().empty()) {
        problems_.push_back(fmt::format("{}: {}", path, file.problem()));
    }
    return file.problem().empty() ? &file : nullptr;
}

}  // namespace tensorpool::command::symbols
