#include "run/parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>

#include "common/printable.hpp"
#include "run/program_file.hpp"
#include "run/words.hpp"

namespace tensorpool::command::run {
namespace {

namespace fs = std::filesystem;

#ifdef TENSORPOOL_RUN_SHARED
constexpr bool is_shared = true;
#else
constexpr bool is_shared = false;
#endif
constexpr const char* not_shared =
    "this tensorpool was built with BUILD_SHARED_LIBS=OFF, and what is put under programs "
    "needs the pool in a shared library: build the preset `shared`";

bool is_there(const fs::path& path) {
    std::error_code ignored;
    return fs::exists(path, ignored);
}

/// A wrong path in LD_PRELOAD costs a line on stderr for each process, and glibc's malloc serves.
std::string problem_of_malloc(const Places& places, const std::string& program) {
    const std::string path = places.interposer;
    if (!is_there(path)) return printable(path) + " is not there: tensorpool is not whole";
    if (path.find_first_of(" :") != std::string::npos) {
        return fmt::format("'{}' has a space or a colon, which LD_PRELOAD cannot name: move it",
                           printable(path));
    }
    return program.empty() ? "" : problem_of_preloading(program);
}

bool has_module(const fs::path& package) {
    std::error_code ignored;
    for (const fs::directory_entry& file : fs::directory_iterator(package, ignored)) {
        if (file.path().filename().string().starts_with("_tensorpool.")) return true;
    }
    return false;
}

std::string problem_of_python(const Places& places) {
    if (!has_module(places.package)) {
        return fmt::format(
            "{} has no module: it is built where the Debian packages python3-dev, "
            "python3-numpy and pybind11-dev are installed",
            printable(places.package.string()));
    }
    const std::string folder = places.site_folder;
    if (!is_there(places.site_folder / "sitecustomize.py")) {
        return printable(folder) + "/sitecustomize.py is not there: tensorpool is not whole";
    }
    if (folder.find(':') == std::string::npos) return "";
    return fmt::format("'{}' has a colon, which PYTHONPATH cannot name: move it",
                       printable(folder));
}

std::string problem_of_torch(const Places& places) {
    if (std::string problem = problem_of_python(places); !problem.empty()) return problem;
    if (is_there(places.torch) && is_there(places.package / "_torch.py")) return "";
    return fmt::format(
        "{} is not there: it is built where the Debian package libtorch-dev is installed",
        printable(places.torch.string()));
}

std::string problem_of(Part part, const Places& places, const std::string& program) {
    if (!is_shared) return not_shared;
    switch (part) {
        case Part::malloc:
            return problem_of_malloc(places, program);
        case Part::numpy:
            return problem_of_python(places);
        case Part::torch:
            return problem_of_torch(places);
    }
    return "";
}

bool is_known(const std::string& name) {
    return std::ranges::any_of(all_parts, [&](Part part) { return name_of(part) == name; });
}

void check_names(const std::vector<std::string>& with) {
    for (const std::string& name : with) {
        if (is_known(name) || (name == "none" && with.size() == 1)) continue;
        throw CommandError(wrong_usage,
                           fmt::format("run: --with {}: expected malloc, numpy and torch, one or "
                                       "several with commas between, or none",
                                       printable(name)));
    }
}

}  // namespace

std::string_view name_of(Part part) noexcept {
    constexpr std::string_view names[] = {"malloc", "numpy", "torch"};
    return names[static_cast<std::size_t>(part)];
}

std::string_view title_of(Part part) noexcept {
    constexpr std::string_view titles[] = {"malloc", "NumPy", "PyTorch"};
    return titles[static_cast<std::size_t>(part)];
}

std::vector<PlannedPart> plan_parts(const std::vector<std::string>& with, const Places& places,
                                    const std::string& program) {
    check_names(with);
    std::vector<PlannedPart> parts;
    for (const Part part : all_parts) {
        const bool named = std::ranges::find(with, name_of(part)) != with.end();
        if (!with.empty() && !named) continue;
        parts.push_back({part, problem_of(part, places, program)});
        if (!named || parts.back().is_put()) continue;
        throw CommandError(run_failed,
                           fmt::format("run: --with {}: {}", name_of(part), parts.back().problem));
    }
    if (with.empty() && !is_shared) {
        throw CommandError(run_failed,
                           fmt::format("run: {}; or give --with none, for a program that uses "
                                       "tensorpool by itself",
                                       not_shared));
    }
    return parts;
}

bool is_put(const std::vector<PlannedPart>& parts, Part part) noexcept {
    return std::ranges::any_of(
        parts, [&](const PlannedPart& one) { return one.part == part && one.is_put(); });
}

}  // namespace tensorpool::command::run
