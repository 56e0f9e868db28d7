#include "replay/contenders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "common/printable.hpp"
#include "common/settings.hpp"

namespace tensorpool::command::replay {
namespace {

/// jemalloc that keeps what was freed for ever, and treats large blocks as others: what its users
/// do for programs like these.
constexpr const char* tuned = "dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0";

const std::vector<Contender>& known() {
    static const std::vector<Contender> contenders = {
        {"none", Calls::floor, "", false, "", {}, false},
        {"plan", Calls::plan, "", false, "", {}, false},
        {"pool", Calls::pool, "", false, "", {}, false},
        {"glibc", Calls::malloc, "libc", false, "libc6", {}, false},
        {"tcmalloc",
         Calls::malloc,
         "libtcmalloc_minimal.so.4",
         true,
         "libtcmalloc-minimal4",
         {},
         false},
        {"jemalloc", Calls::malloc, "libjemalloc.so.2", true, "libjemalloc2", {}, false},
        {"jemalloc-tuned",
         Calls::malloc,
         "libjemalloc.so.2",
         true,
         "libjemalloc2",
         {{"MALLOC_CONF", tuned}},
         true},
        {"mimalloc", Calls::malloc, "libmimalloc.so.2", true, "libmimalloc2.0", {}, false},
    };
    return contenders;
}

std::vector<std::string> parts_of(const std::string& text, char between) {
    std::vector<std::string> parts;
    for (std::size_t at = 0; at <= text.size();) {
        const std::size_t end = std::min(text.find(between, at), text.size());
        parts.push_back(text.substr(at, end - at));
        at = end + 1;
    }
    return parts;
}

Contender contender_of(const std::string& word) {
    const std::vector<std::string> parts = parts_of(word, ':');
    const auto found = std::ranges::find(known(), parts.front(), &Contender::name);
    if (found == known().end()) {
        throw CommandError(wrong_usage,
                           fmt::format("--against: there is no contender {}; there are {}",
                                       printable(parts.front()), contender_names()));
    }
    Contender contender = *found;
    if (parts.size() == 1) return contender;
    if (contender.calls != Calls::pool) {
        throw CommandError(wrong_usage,
                           fmt::format("--against: only the pool takes options, not {}; found {}",
                                       contender.name, printable(word)));
    }
    contender.name = word;
    contender.variables = pool_variables(std::span(parts).subspan(1));
    return contender;
}

}  // namespace

std::string contender_names() {
    std::string names;
    for (const Contender& contender : known()) names += ", " + contender.name;
    return names.substr(2);
}

std::vector<Contender> contenders_of(std::span<const std::string> names,
                                     std::span<const std::string> options) {
    std::vector<Contender> contenders;
    std::ranges::transform(names, std::back_inserter(contenders), contender_of);
    const Variables variables = pool_variables(options);
    for (Contender& contender : contenders) {
        if (contender.calls == Calls::pool && contender.variables.empty()) {
            contender.variables = variables;
        }
    }
    return contenders;
}

}  // namespace tensorpool::command::replay
