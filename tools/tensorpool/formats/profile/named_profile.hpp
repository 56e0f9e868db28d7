#pragma once

#include <tuple>

#include <tensorpool/heap_profile.hpp>

#include "common/cells.hpp"
#include "formats/symbols/frame_names.hpp"

namespace tensorpool::command::profile {

/// The value of a site that sorts the sites and that exports contain.
enum class Value { live, peak, allocated };

/// What a site has of each `Value`. The numbers of blocks are estimates.
inline constexpr struct {
    std::string_view name;
    std::uint64_t ProfileSite::*bytes;
    double ProfileSite::*blocks;
} values[] = {
    {"live", &ProfileSite::live_bytes, &ProfileSite::live_blocks},
    {"peak", &ProfileSite::peak_bytes, &ProfileSite::peak_blocks},
    {"allocated", &ProfileSite::allocated_bytes, &ProfileSite::allocated_blocks},
};

inline std::uint64_t bytes_of(const ProfileSite& site, Value value) noexcept {
    return site.*values[static_cast<std::size_t>(value)].bytes;
}

struct NamedProfile {
    /// The sites with the most bytes come first. Each stack has its outermost call first, without
    /// the calls of tensorpool itself and without indices beyond `frames`.
    HeapProfile profile;
    std::vector<symbols::FrameName> frames;  ///< the names of `profile.frames`
    std::vector<std::string> problems;       ///< why names are missing
    Value value = Value::live;

    std::uint64_t total(Value of) const noexcept {
        std::uint64_t bytes = 0;
        for (const ProfileSite& site : profile.sites) bytes += bytes_of(site, of);
        return bytes;
    }
};

/// Whether a call is part of tensorpool, which a program may contain.
inline bool is_own(const symbols::FrameName& frame) {
    return frame.internal && (frame.location.function.starts_with("tensorpool::") ||
                              symbols::is_pools_library(frame.module));
}

/// Turns a stack around, and removes the innermost calls that are tensorpool's, unless all are.
inline void turn_around(std::vector<std::uint32_t>& stack,
                        const std::vector<symbols::FrameName>& frames) {
    std::erase_if(stack, [&](std::uint32_t index) { return index >= frames.size(); });
    const auto caller =
        std::ranges::find_if_not(stack, [&](std::uint32_t index) { return is_own(frames[index]); });
    if (caller != stack.end()) stack.erase(stack.begin(), caller);
    std::ranges::reverse(stack);
}

/// Names the frames of successive profiles of one process. A frame is looked up only once, because
/// reading the symbols of a large library takes seconds. Used by one thread at a time.
class ProfileNames {
public:
    ProfileNames() = default;
    ProfileNames(const ProfileNames&) = delete;
    ProfileNames& operator=(const ProfileNames&) = delete;

    /// Finds the names of the frames, and sorts the sites by `value`.
    NamedProfile name(HeapProfile profile, Value value) {
        NamedProfile named;
        named.profile = std::move(profile);
        named.value = value;
        for (const ProfileFrame& frame : named.profile.frames) {
            const std::string path = frame.module.empty() ? "?" : frame.module;
            named.frames.push_back(names_.name({module_of(path), frame.offset}));
        }
        for (ProfileSite& site : named.profile.sites) turn_around(site.stack, named.frames);
        named.problems = names_.problems();
        const auto rank = [&](const ProfileSite& site) {
            return std::tuple(bytes_of(site, value), site.live_bytes, site.peak_bytes,
                              site.allocated_bytes, site.id);
        };
        std::ranges::sort(named.profile.sites, std::ranges::greater(), rank);
        return named;
    }

private:
    std::uint32_t module_of(const std::string& path) {
        const auto next = static_cast<std::uint32_t>(recording_.modules.size());
        const auto [at, is_new] = modules_.try_emplace(path, next);
        if (is_new) recording_.modules.push_back({.path = path});
        return at->second;
    }

    trace::Recording recording_;  ///< has only modules
    std::unordered_map<std::string, std::uint32_t> modules_;
    symbols::FrameNames names_{recording_};
};

inline constexpr const char* other_stacks = "[other stacks]";

/// Returns the line of the program that allocates.
inline std::string line_of(const NamedProfile& named, const ProfileSite& site) {
    std::vector<const symbols::FrameName*> frames;
    for (const std::uint32_t index : site.stack) frames.push_back(&named.frames[index]);
    std::ranges::reverse(frames);
    const symbols::FrameName* const line = symbols::line_of_program(frames);
    return line == nullptr ? other_stacks : to_short_text(*line);
}

/// Returns the line of the program as the last cell of a row. A longer one would not fit the table.
inline Cell line_cell(const NamedProfile& named, const ProfileSite& site) {
    constexpr std::size_t max_columns = 200;
    const std::string line = printable(line_of(named, site));
    return {fit(line, std::min(columns_of(line), max_columns))};
}

using symbols::FrameName;
using Frames = std::vector<const FrameName*>;

/// Removes the calls outside of the outermost one of Python, or of `main`.
inline void remove_outer_calls(Frames& innermost_first) {
    const bool has_python = std::ranges::any_of(innermost_first, &FrameName::is_python);
    const auto is_start = [&](const FrameName* frame) {
        return has_python ? frame->is_python : frame->location.function == "main";
    };
    while (std::ranges::any_of(innermost_first, is_start) && !is_start(innermost_first.back())) {
        innermost_first.pop_back();
    }
}

inline std::string text_of(std::span<const FrameName* const> calls) {
    if (calls.size() == 1) return to_short_text(*calls.front());
    const std::string_view library = symbols::base_name(calls.front()->module);
    const bool is_one_library = std::ranges::all_of(
        calls, [&](const FrameName* call) { return symbols::base_name(call->module) == library; });
    return fmt::format("{} calls in {}{}", calls.size(), library,
                       is_one_library ? "" : " and other libraries");
}

/// Adds all values of a site to another.
inline void add(ProfileSite& to, const ProfileSite& site) {
    to.samples += site.samples;
    to.live_bytes += site.live_bytes;
    to.live_blocks += site.live_blocks;
    to.allocated_bytes += site.allocated_bytes;
    to.allocated_blocks += site.allocated_blocks;
    to.peak_bytes += site.peak_bytes;
    to.peak_blocks += site.peak_blocks;
    for (std::size_t i = 0; i < to.lifetimes.size(); ++i) to.lifetimes[i] += site.lifetimes[i];
}

/// Removes the frames that no site uses, and the indices beyond the frames.
inline void drop_unused_frames(HeapProfile& profile) {
    std::unordered_map<std::uint32_t, std::uint32_t> numbers;
    std::vector<ProfileFrame> used;
    for (ProfileSite& site : profile.sites) {
        std::erase_if(site.stack, [&](auto index) { return index >= profile.frames.size(); });
        for (std::uint32_t& index : site.stack) {
            const auto next = static_cast<std::uint32_t>(used.size());
            const auto [at, is_new] = numbers.try_emplace(index, next);
            if (is_new) used.push_back(std::move(profile.frames[index]));
            index = at->second;
        }
    }
    profile.frames = std::move(used);
}

inline std::string_view name_of(Value value) noexcept {
    return values[static_cast<std::size_t>(value)].name;
}

/// Returns the number of blocks: at least 1 if the site has bytes, although it is an estimate. Some
/// readers reject bytes without blocks.
inline std::uint64_t blocks_of(const ProfileSite& site, Value value) noexcept {
    constexpr double end = 0x1p62;  // the process may have written anything
    const double blocks = std::round(site.*values[static_cast<std::size_t>(value)].blocks);
    const std::uint64_t min = bytes_of(site, value) == 0 ? 0 : 1;
    return blocks > 0 && blocks < end ? std::max(min, static_cast<std::uint64_t>(blocks)) : min;
}

/// Returns the stack of a site as texts such as "function at file:line", outermost call first;
/// "[other stacks]" if the site has none.
inline std::vector<std::string> stack_of(const NamedProfile& named, const ProfileSite& site) {
    if (site.stack.empty()) return {other_stacks};
    std::vector<std::string> texts;
    for (const std::uint32_t index : site.stack) {
        texts.push_back(to_short_text(named.frames[index]));
    }
    return texts;
}

/// Returns a profile with one site for each such line: the sum of its sites, with the stack of the
/// largest.
inline NamedProfile sum_by_line(NamedProfile named) {
    std::vector<ProfileSite> sums;
    std::unordered_map<std::string, std::size_t> indices;
    for (ProfileSite& site : named.profile.sites) {
        const auto [at, is_new] = indices.try_emplace(line_of(named, site), sums.size());
        if (is_new) {
            sums.push_back(std::move(site));
        } else {
            add(sums[at->second], site);
        }
    }
    const auto bytes = [&](const ProfileSite& sum) { return bytes_of(sum, named.value); };
    std::ranges::stable_sort(sums, std::ranges::greater(), bytes);
    named.profile.sites = std::move(sums);
    return named;
}

/// Finds the names of the frames, and sorts the sites by `value`.
inline NamedProfile name_frames(HeapProfile profile, Value value) {
    return ProfileNames().name(std::move(profile), value);
}

/// Returns the calls of a site for a person to read, innermost first, as in a debugger. They are
/// safe to print.
///
/// In a Python program, those of Python are left, and successive calls of libraries below them are
/// one text. In other programs, calls outside of `main` are left out.
inline std::vector<std::string> short_stack_of(const NamedProfile& named, const ProfileSite& site) {
    if (site.stack.empty()) return stack_of(named, site);
    Frames frames;
    for (const std::uint32_t index : site.stack) frames.push_back(&named.frames[index]);
    std::ranges::reverse(frames);
    remove_outer_calls(frames);
    const bool is_python_program = frames.back()->is_python;
    std::vector<std::string> texts;
    for (auto call = frames.begin(); call != frames.end();) {
        auto next = call + 1;
        if (is_python_program && !(*call)->is_python) {
            next = std::ranges::find_if(call, frames.end(), &FrameName::is_python);
        }
        texts.push_back(printable(text_of(std::span(call, next))));
        call = next;
    }
    return texts;
}

/// Returns the calls of `short_stack_of`, each on an indented line.
inline std::string stack_text(const NamedProfile& named, const ProfileSite& site) {
    std::string text;
    for (const std::string& call : short_stack_of(named, site)) text += "    " + call + '\n';
    return text;
}

}  // namespace tensorpool::command::profile
