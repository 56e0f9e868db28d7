#include "formats/profile/short_stack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "common/printable.hpp"

namespace tensorpool::command::profile {
namespace {

using symbols::FrameName;
using Frames = std::vector<const FrameName*>;

std::string library_of(const FrameName& frame) {
    return frame.module.substr(frame.module.rfind('/') + 1);
}

/// Removes the calls outside of the outermost one of Python, or of `main`.
void remove_outer_calls(Frames& innermost_first) {
    const bool has_python = std::ranges::any_of(innermost_first, &FrameName::is_python);
    const auto is_start = [&](const FrameName* frame) {
        return has_python ? frame->is_python : frame->location.function == "main";
    };
    while (std::ranges::any_of(innermost_first, is_start) && !is_start(innermost_first.back())) {
        innermost_first.pop_back();
    }
}

/// Describes successive calls that are not of Python.
std::string text_of(std::span<const FrameName* const> calls) {
    if (calls.size() == 1) return to_short_text(*calls.front());
    const std::string library = library_of(*calls.front());
    const bool is_one_library = std::ranges::all_of(
        calls, [&](const FrameName* call) { return library_of(*call) == library; });
    return fmt::format("{} calls in {}{}", calls.size(), library,
                       is_one_library ? "" : " and other libraries");
}

}  // namespace

std::vector<std::string> short_stack_of(const NamedProfile& named, const ProfileSite& site) {
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

}  // namespace tensorpool::command::profile
