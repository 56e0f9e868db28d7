#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "common/html.hpp"
#include "formats/profile/formats.hpp"

namespace tensorpool::command::profile {
namespace {

/// A name must fit on one line, and semicolons separate names.
std::string clean(const std::string& name) {
    std::string text = valid_utf8(name);
    std::ranges::replace(text, ';', ':');
    std::ranges::replace_if(
        text, [](char character) { return static_cast<unsigned char>(character) < ' '; }, '?');
    return text;
}

}  // namespace

std::string to_collapsed(const NamedProfile& named) {
    std::map<std::string, std::uint64_t> sums;  // stacks may differ in nothing that has a name
    for (const ProfileSite& site : named.profile.sites) {
        const std::uint64_t bytes = bytes_of(site, named.value);
        if (bytes == 0) continue;
        std::string stack;
        for (const std::string& call : stack_of(named, site)) {
            if (!stack.empty()) stack += ';';
            stack += clean(call);
        }
        sums[stack] += bytes;
    }
    std::string text;
    for (const auto& [stack, bytes] : sums) text += fmt::format("{} {}\n", stack, bytes);
    return text;
}

}  // namespace tensorpool::command::profile
